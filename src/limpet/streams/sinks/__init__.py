"""Sinks: line files, Parquet, SQLite, standard output, webhooks."""

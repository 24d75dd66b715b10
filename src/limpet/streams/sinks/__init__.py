"""Sinks: line files, Parquet, SQLite, standard output, web hooks."""

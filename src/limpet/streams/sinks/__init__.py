"""Where results go: files, Parquet, SQLite, standard output, web hooks."""

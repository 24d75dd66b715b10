"""Sources: files, folders, Parquet, standard input."""

"""Sources: files, directories, Parquet, standard input."""

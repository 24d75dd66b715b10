"""Where records come from: files, directories, Parquet, standard input."""

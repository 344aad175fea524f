"""Questions in SQL about all runs: the catalogue as tables of DuckDB, and as Parquet files."""

"""Query all runs in SQL: the catalogue as tables of DuckDB, and as Parquet files."""

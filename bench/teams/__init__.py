"""Shared stores, the catalogue in PostgreSQL, Parquet and batches on clusters, measured."""

"""The verdict on a replay and the report that explains it."""

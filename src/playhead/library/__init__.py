"""The catalogue of tapes: list, filter, search and summarise runs. Derived data; the tapes are the truth."""

"""The model in other formats: JSON now; more stand beside it."""

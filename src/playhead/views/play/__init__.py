"""A run as it happened. `frames` and `player` are pure; `screen` and `keys` know terminals."""

"""The process of our own that runs beside a recorded command."""

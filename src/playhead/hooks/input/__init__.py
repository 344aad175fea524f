"""Input to a run: its stdin, and passwords that a person types."""

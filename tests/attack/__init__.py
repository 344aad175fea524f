"""Attacks on Playhead: hostile tapes, secrets and requests. `python -m tests.attack` runs all of them and counts."""

"""Playback of a run on a terminal. `frames`, `playback` and `transcript` are pure; `terminal` knows terminals."""

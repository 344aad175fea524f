"""The files of a run: a snapshot of the project folder at the start, and the changes of each call.

Knows folders, content and history; not mounts, replays or views. Standard library only: the launcher
records with it.
"""

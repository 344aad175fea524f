"""An interactive terminal UI for runs: find, read, play, compare. See `tui_app`."""

"""The library over HTTP, for the viewer and for programs. See `table` for what can be asked."""

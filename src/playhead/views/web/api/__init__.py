"""The HTTP API of a library, for the viewer and for programs. `operations` has the table of operations."""

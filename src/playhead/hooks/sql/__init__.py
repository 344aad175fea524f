"""Hooks for databases whose clients are C libraries that open their own sockets: each statement is one `sql` call."""

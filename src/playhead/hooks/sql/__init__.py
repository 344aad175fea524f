"""Databases whose clients are C libraries with sockets of their own: each statement is a call of the boundary `sql`."""

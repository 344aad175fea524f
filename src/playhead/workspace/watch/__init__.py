"""File changes while a command runs: events of the kernel, marks of calls, attribution of changes to calls."""

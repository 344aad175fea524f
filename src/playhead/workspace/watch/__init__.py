"""Changes while a command runs: events of the kernel, marks of calls, attribution."""

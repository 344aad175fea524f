"""Which step changed a file, and which step wrote a line."""

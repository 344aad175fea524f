"""Programs that the benches record and replay: each is run as a user would run it."""

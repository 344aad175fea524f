"""Virtual time: the clock of a replay."""

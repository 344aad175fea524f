"""Read the segments of a tape: lines, rows, their order, and single events by name."""

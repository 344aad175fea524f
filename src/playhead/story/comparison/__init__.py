"""The differences between two runs: their steps, their answers and the files they left."""

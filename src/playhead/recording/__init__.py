"""Recording: the deck, the recorder, lanes, runs and turns."""

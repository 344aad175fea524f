"""The files of a replay or fork: restored from the tape, changed by served and live calls, and compared."""

"""Run an agent again with the world taken from a tape.

`taped` reads the tape into calls that can be served, `matcher` pairs a call with one of them,
`mode` is what the deck asks, `nearest` finds what to say when nothing fits, `report` judges.
"""

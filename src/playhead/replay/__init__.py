"""Run an agent again with every answer taken from a tape.

`matching/taped` reads the tape into calls that can be served, `matching/matcher` pairs a call with one of them, `modes`
decide how the deck answers a call, `matching/nearest` explains a call that no taped call fits, and `report` gives the
verdict.
"""

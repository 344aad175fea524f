"""Python values to JSON and back. Knows values and codecs; not events, tapes or secrets."""

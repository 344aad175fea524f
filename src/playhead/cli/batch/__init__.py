"""`playhead batch`: replay many tapes at once and judge each of them."""

"""`playhead demo`: record, watch and replay a small agent without a network."""

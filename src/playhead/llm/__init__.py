"""What an LLM exchange means to people: its price. Not a guest; decoding is `playhead.wire`."""

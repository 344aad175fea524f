"""Formats that carry LLM answers: content encodings, server-sent events, event streams, JSON that may be cut."""

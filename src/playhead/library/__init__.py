"""The catalogue of tapes: what is there, found and filtered. Derived; the tapes are the truth."""

"""The native core beside its twin in Python: same findings, same bytes."""

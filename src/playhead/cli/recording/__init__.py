"""Verbs that record: record, loop, session, proxy, import."""

"""Replies of a script and their encoding, shared by the providers and the scripted server. Pure."""

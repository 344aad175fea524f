"""Verbs that run an agent again: replay, fork, chaos, batch, accept, promote, scripted-llm."""

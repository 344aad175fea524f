"""Single-file HTML reports without scripts: to be sent, printed, or shown by a CI server that forbids scripts.

They use the style sheets of the viewer. Text from tapes is always escaped.
"""

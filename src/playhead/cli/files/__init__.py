"""The verbs about the files of a run."""

"""What Playhead reads of a git repository, without starting git."""

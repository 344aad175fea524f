"""`python -m playhead`: the command line where its script is not on the path."""

from playhead.cli import main

main()

"""Run a recorded command, or a recorded session, again against its tape.

replay_run            the steps of `playhead replay`, from the tape to the verdict
replay_limits         the fence of the command, and what it may reach
replay_environment    the variables that the command gets
replayed_files        its files, restored from the tape
session_replay        a recorded pool of workers, in the process of the caller
mutation_order        the order in which the workers change the shared store
fenced_child          a replay inside a test: a fenced fork of the process
"""

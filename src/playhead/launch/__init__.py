"""Zero-code start: how a recording gets into the processes of a run. Knows interpreters, variables and
signals; not what is recorded once it is there (see `boundaries`).

    session     hooks on, hooks off: what `playhead record` and `record(intercept=True)` share
    site/       found by every Python of the run before its own code: loads `guest`
    guest       one process of the run: its segment, its end
    children    what a child is started with so that it is recorded too
    launch      the other side: runs the command, touching nothing that it sees
"""

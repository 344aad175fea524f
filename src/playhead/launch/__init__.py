"""Record a command without changing its code: how a recording gets into the processes of a run. Knows
interpreters, variables, signals and processes; what is recorded is decided in `hooks`.

    command, spawn_command, closing   `playhead record`: start the command, wait, close the run
    replay_command, standalone_proxy  `playhead replay` and `playhead proxy`
    record_run, tap, sessions         the public Python API
    sidecar/                          the one process beside the command: output, signals, proxy, shims
    guest/                            what runs in each Python of the run, found through `guest/site`
    proxy/, shims/                    what serves programs that are not Python
"""

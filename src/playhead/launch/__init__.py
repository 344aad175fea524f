"""Record and replay commands without changing their code. Knows interpreters, variables, signals and processes;
`hooks` decides what is recorded.

    command, spawn_command, closing   `playhead record`: start the command, wait, close the run
    standalone_proxy                  `playhead proxy`
    replaying/                        `playhead replay`, and the replay of a recorded session
    record_run, tap, sessions         the public Python API
    sidecar/                          the one process beside the command: output, signals, proxy, shims
    guest/                            code that runs in each Python of the run, loaded through `guest/site`
    proxy/, shims/, follow/           for programs that are not Python
"""

"""Subprocesses of programs that we cannot hook: node, Rust, Go, shell scripts. Shims stand on PATH for
the programs that are to be taped. Knows executables and one socket; not the programs.

    names       which programs, and where the command would find them
    native/     the shim itself, in C: 0.5 ms, compiled once a machine
    fallback    the same in Python, where there is no compiler: right, but not quick
    folders     where the shims of a run are
    programs    how a shim gets on disk, told which program it stands for
    frames      what a shim and the clerk say to each other
    asked       what a shim was asked, as a call
    caller      one shim, from its call to its end
    telling     how the clerk learns what models have asked for
    clerk       the process that takes the calls: onto the tape, or from it
    launcher    the clerk's line to who started it
    post        the launcher's side: folder, environment, clerk
    covering    which real paths can be covered, too
    mounts      shims over them, in a namespace of the command's own
"""

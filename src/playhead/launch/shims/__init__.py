"""Record the subprocesses of programs that cannot be hooked (node, Rust, Go, shell scripts): executables on PATH
replace the programs that are recorded. Knows executables and one socket; does not know the programs.

    program_names   which programs get a shim, and where the command would find them
    native/         the shim itself, in C: 0.5 ms, compiled once per machine
    fallback        the same in Python, where there is no compiler: slower
    programs        writes a shim to disk, with its settings
    post            the launcher's side: folder, socket, environment
    shim_frames     the messages between a shim and the sidecar
    shim_request    a shim's call, in the form of the tape
    caller          one shim, from its call to its end (the sidecar's `shim_service` has many)
    covering        which real paths can be covered as well
    mounts          mounts shims over them, in a namespace of the command's own
"""

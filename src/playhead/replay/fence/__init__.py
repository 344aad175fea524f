"""Isolate a replay from the outside world with the kernel's help, for every process of the tree, in any language.

barrier          the launcher's end: build a fence, pass listeners out, start the command
inside           the process that enters the fence and becomes the command
line             messages between these two
namespaces       network, mounts and IPC of the command's own
covers           overlays over the real files
composed         a folder that no overlay can cover, composed of its entries
mount_table      the current mounts, and the calls that change them
landlock         rules that a process gives itself, for machines without namespaces
seccomp          filters of system calls
notifications    system calls that a filter announces before they happen
setuid_programs  whether a command needs the privileges of setuid programs
sock_diag        which sockets listen on a port or a path
kernel           system calls that Python has no function for
leaks            an audit hook for connections and processes that no hook has seen
"""

"""Keep a replay from the world, by the kernel: for every process of the tree, in any language.

barrier      the launcher's end: build a fence, pass listeners out, start the command
inside       the process that goes in and becomes the command
line         what those two say to each other
namespaces   network, mounts and IPC of its own
overlays     which files are covered, and how
mount_table  mounts as they are, and the calls that change them
landlock     rules that a process gives itself: where there are no namespaces
seccomp      filters of system calls
kernel       system calls that Python has no function for
"""

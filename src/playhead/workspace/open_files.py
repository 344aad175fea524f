"""Find the files that the processes below this one have open for writing. Knows /proc; empty on other systems."""

from __future__ import annotations

import os
from collections.abc import Iterator


def open_for_writing(root: str) -> set[bytes]:
    """Paths below `root`, relative to it, that a descendant of this process may write to at any time."""
    prefix = os.fsencode(root).rstrip(b"/") + b"/"
    found: set[bytes] = set()
    for pid in _descendants(os.getpid()):
        try:
            descriptors = os.listdir(f"/proc/{pid}/fd")
        except OSError:
            continue  # it has ended, or is not ours to look at
        for one in descriptors:
            try:
                path = os.readlink(os.fsencode(f"/proc/{pid}/fd/{one}"))
                if path.startswith(prefix) and _is_writing(pid, one):
                    found.add(path[len(prefix) :])
            except OSError:
                continue
    return found


def _is_writing(pid: int, descriptor: str) -> bool:
    with open(f"/proc/{pid}/fdinfo/{descriptor}", encoding="ascii") as file:
        flags = next((line for line in file if line.startswith("flags:")), "flags: 0")
    return int(flags.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY


def _descendants(pid: int) -> Iterator[int]:
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return
    for task in tasks:
        try:
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                children = file.read().split()
        except OSError:
            continue
        for child in map(int, children):
            yield child
            yield from _descendants(child)

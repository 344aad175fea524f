"""Find the files that the processes below this one have open for writing. Knows /proc; empty on other systems."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator


def open_for_writing(root: str) -> set[bytes]:
    """Return the paths below `root`, relative to it, that a descendant of this process may write to at any time."""
    prefix = os.fsencode(root).rstrip(b"/") + b"/"
    found: set[bytes] = set()
    for pid in _descendants(os.getpid()):
        try:
            descriptors = os.listdir(f"/proc/{pid}/fd")
        except OSError:
            continue  # it has ended, or belongs to another user
        for one in descriptors:
            try:
                path = os.readlink(os.fsencode(f"/proc/{pid}/fd/{one}"))
                if path.startswith(prefix) and _is_writing(pid, one):
                    found.add(path[len(prefix) :])
            except OSError:
                continue
    return found


def positions(pids: Iterable[int], paths: Container[bytes]) -> dict[bytes, int]:
    """Return which of these files the processes have open for writing, with the furthest position in each."""
    found: dict[bytes, int] = {}
    for pid in pids:
        try:
            descriptors = os.listdir(f"/proc/{pid}/fd")
        except OSError:
            continue  # it has ended
        for one in descriptors:
            try:
                path = os.readlink(os.fsencode(f"/proc/{pid}/fd/{one}"))
                if path in paths and _is_writing(pid, one):
                    found[path] = max(found.get(path, 0), _position(pid, one))
            except OSError:
                continue  # closed meanwhile
    return found


def open_count(pid: int, path: bytes) -> int:
    """Return how many descriptors of a process may write to this file."""
    count = 0
    try:
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return 0  # it has ended
    for one in descriptors:
        try:
            if os.readlink(os.fsencode(f"/proc/{pid}/fd/{one}")) == path:
                count += _is_writing(pid, one)
        except OSError:
            continue  # closed meanwhile
    return count


def _position(pid: int, descriptor: str) -> int:
    with open(f"/proc/{pid}/fdinfo/{descriptor}", encoding="ascii") as file:
        return next((int(line.split()[1]) for line in file if line.startswith("pos:")), 0)


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

"""Where the command's output goes, and who sees it on the way. Knows descriptors; not processes.

A terminal is left to the command (see `output`). Everything else, pipes, files, sockets, /dev/null,
gets a pipe of ours in front of it, from which an attendant passes on what comes.
"""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass, field

_NAMES = {1: "stdout", 2: "stderr"}
# Above the descriptors that programs and shells use by number.
_HIGH = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A pipe in front of one or two of the command's descriptors."""

    name: str
    # The command's descriptors that lead into it.
    fds: tuple[int, ...]
    # Its two ends, and where it leads: a duplicate of what the command's descriptor was.
    source: int
    entry: int
    sink: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPlan:
    """What becomes of the command's stdout and stderr."""

    streams: tuple[Stream, ...] = ()
    # The devices of those descriptors that are terminals.
    terminals: tuple[int, ...] = ()
    # For the tape: {"stdout": "piped", "stderr": "terminal"}.
    told: dict[str, str] = field(default_factory=dict)


def plan() -> StreamPlan:
    """Look at our own stdout and stderr, which are the command's, and put pipes where they go."""
    streams: dict[tuple[int, int], Stream] = {}
    terminals: list[int] = []
    told: dict[str, str] = {}
    for fd, name in _NAMES.items():
        try:
            stat = os.fstat(fd)
        except OSError:
            told[name] = "closed"
            continue
        if os.isatty(fd):
            told[name] = "terminal"
            terminals.append(stat.st_rdev)
            continue
        told[name] = "piped"
        place = (stat.st_dev, stat.st_ino)
        if place in streams:
            # `2>&1`: two pipes into one file could change the order of what is written.
            streams[place] = _joined(streams[place], fd)
            told[name] = f"with {streams[place].name}"
        else:
            streams[place] = _opened(name, fd)
    return StreamPlan(
        streams=tuple(streams.values()), terminals=tuple(dict.fromkeys(terminals)), told=told
    )


def _opened(name: str, fd: int) -> Stream:
    source, entry = (_moved_up(end) for end in os.pipe())
    # Only the reader: a program that finds its stdout non-blocking would lose output.
    os.set_blocking(source, False)
    sink = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    return Stream(name=name, fds=(fd,), source=source, entry=entry, sink=sink)


def _joined(stream: Stream, fd: int) -> Stream:
    return Stream(
        name=stream.name,
        fds=(*stream.fds, fd),
        source=stream.source,
        entry=stream.entry,
        sink=stream.sink,
    )


def _moved_up(fd: int) -> int:
    """Where stdin, stdout or stderr was closed, a pipe would take its number."""
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    os.close(fd)
    return moved

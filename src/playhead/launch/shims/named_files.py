"""Files outside the workspace that a process call changed and that its command line names.

Agents read such files when their tool has ended: Claude Code lets the shell write its working folder to
`/tmp/claude-…-cwd`, Gemini CLI its background jobs to `/tmp/gemini-shell-…/bgpids.tmp`. The names differ in every run,
so a file is identified by its position among the paths of the command line. Knows paths and small files; does not know
how shims connect.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from stat import S_ISREG
from typing import Any, NamedTuple

from playhead.encoding.values import thaw
from playhead.replay.matching.shell_snapshot import without_snapshot
from playhead.workspace.chosen_files import is_secret

# The fact of an outcome that has these files: position → content.
FACT = "named_files"
# Larger files are not recorded: such contents are data of tools, and not what an agent needs to continue.
_LARGEST = 64 * 1024
_MOST_PATHS = 64
_MOST_FILES = 8
_PATH = re.compile(r"(?<![\w.~/$-])/[\w.+@%,:~-]+(?:/[\w.+@%,:~-]+)*")
_NO_FILES = ("/dev/", "/proc/", "/sys/")


class _State(NamedTuple):
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


class NamedFiles:
    """The state of the files that a command line names, before the program runs."""

    def __init__(self, argv: Sequence[str], is_covered: Callable[[str], bool]) -> None:
        """`is_covered`: whether a workspace of the run has this path, and so records its changes."""
        self._paths = [
            (at, path)
            for at, path in enumerate(paths_in(argv))
            if not path.startswith(_NO_FILES) and not is_covered(path)
        ]
        self._before = {path: _state(path) for _, path in self._paths}

    def facts(self) -> dict[str, Any]:
        """Return the files that have changed since, as facts of the outcome."""
        found: dict[str, bytes] = {}
        for at, path in self._paths:
            if len(found) < _MOST_FILES and _state(path) not in (None, self._before[path]):
                content = None if is_secret(os.fsencode(path)) else _read(path)
                if content is not None:
                    found[str(at)] = content
        return {FACT: found} if found else {}


def files_to_write(argv: Sequence[str], facts: Mapping[str, Any]) -> list[tuple[str, bytes]]:
    """Return the files that a taped call wrote, under the names that this command line has for them."""
    paths, taped = paths_in(argv), thaw(facts.get(FACT))
    if not isinstance(taped, dict):
        return []
    return [
        (paths[int(at)], content)
        for at, content in taped.items()
        if isinstance(content, bytes) and at.isdecimal() and int(at) < len(paths)
    ]


def paths_in(argv: Sequence[str]) -> list[str]:
    """Return the absolute paths in a command line, in order; also those inside a shell's command."""
    found = (path for word in without_snapshot(argv)[1:] for path in _PATH.findall(word))
    return [path for path, _ in zip(found, range(_MOST_PATHS), strict=False)]


def _state(path: str) -> _State | None:
    with suppress(OSError, ValueError):
        seen = os.lstat(path)
        if S_ISREG(seen.st_mode):
            return _State(seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
    return None


def _read(path: str) -> bytes | None:
    with suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            content = file.read(_LARGEST + 1)
            return content if len(content) <= _LARGEST else None
    return None

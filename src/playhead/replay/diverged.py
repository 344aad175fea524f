"""Whether any process of a replay has diverged from the tape so far. Knows the segments in the folder of the replay.

Each process writes its own divergences to its own segment. A parent that waits for its workers must know theirs, too.
"""

from __future__ import annotations

import os

# The original functions: a replay hooks those of `os` and `open` for the program.
import posix
from typing import TYPE_CHECKING

from playhead import clock

if TYPE_CHECKING:
    from playhead.replay.modes.taped_mode import ReplayMode

_MARK = b'"kind":"divergence"'
_PIECE = 1024 * 1024
_LOOK_EVERY_NS = 1_000_000_000


class DivergedFolder:
    """Looks for divergences in the segments of one replay. Reads only what is new since the last look."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._read: dict[str, int] = {}
        self.has_any = False

    def look(self) -> bool:
        """Return whether a segment has a divergence."""
        if self.has_any:
            return True
        try:
            names = posix.listdir(self._folder)
        except OSError:
            return False
        self.has_any = any(self._has_new(name) for name in names if name.endswith(".jsonl"))
        return self.has_any

    def _has_new(self, name: str) -> bool:
        try:
            fd = posix.open(f"{self._folder}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            at = self._read.get(name, 0)
            while piece := posix.pread(fd, _PIECE, at):
                if _MARK in piece:
                    return True
                # The mark may lie across the border of two pieces.
                at += max(1, len(piece) - len(_MARK) + 1)
                if len(piece) < _PIECE:
                    break
            self._read[name] = at
        except OSError:
            return False
        finally:
            posix.close(fd)
        return False


class DivergedSoFar:
    """Looks for divergences of this process, and once a second for those of the other processes."""

    def __init__(self, mode: ReplayMode) -> None:
        self._mode = mode
        self._others = DivergedFolder(mode.folder)
        self._next = clock.mono_ns() + _LOOK_EVERY_NS

    def check(self) -> bool:
        if self._mode.partings or self._others.has_any:
            return True
        now = clock.mono_ns()
        if now < self._next:
            return False
        self._next = now + _LOOK_EVERY_NS
        return self._others.look()

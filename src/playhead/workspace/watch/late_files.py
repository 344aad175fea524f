"""Find out which call wrote a file outside the workspaces. Knows times of calls and of files; does not know content.

Such a file is not watched when a subprocess writes it. The program announces it later, when it is about to read it:
then the time of its last change says during which calls it was written.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections import deque
from typing import NamedTuple

from playhead import clock

# File systems take their times from a clock that is up to 10 ms late.
_LATE_NS = 20_000_000
_MOST = 1_000
_AT_FDCWD = -100
_BIRTH = 0x800
_STATX_SIZE = 256
# `stx_mask`, and the seconds and nanoseconds of `stx_btime`.
_MASK = struct.Struct("=I")
_TIME = struct.Struct("=qI")
_BIRTH_AT = 80


class OutsideWatch(NamedTuple):
    """A file outside the workspaces that is watched from now on, under its own number.

    `is_late`: a call has written it already, so its current content is not that of the start of the run (`began`, by
    the wall clock). If the file is older than the run, its content at the start is not known.
    """

    number: int
    folder: bytes
    name: bytes
    began: int
    is_late: bool


class CallTime(NamedTuple):
    """When a call ran, by the wall clock. `ended` is None while it is open."""

    call: str
    started: int
    ended: int | None
    # The end by the monotonic clock, which orders the events of a tape.
    ended_mono: int

    def has(self, moment: int, margin: int = 0) -> bool:
        is_before_end = self.ended is None or moment <= self.ended + margin
        return self.started - margin <= moment and is_before_end


class CallTimes:
    """The times of the last calls."""

    def __init__(self) -> None:
        self.began = clock.wall_ns()
        self._open: dict[str, int] = {}
        self._past: deque[CallTime] = deque(maxlen=_MOST)

    def start(self, call: str, moment: int) -> None:
        self._open[call] = _wall(moment)

    def end(self, call: str, moment: int) -> None:
        if (started := self._open.pop(call, None)) is not None:
            self._past.append(CallTime(call, started, _wall(moment), moment))

    def at(self, moment: int) -> list[CallTime]:
        """Return the calls during which a file changed at this moment: several if they ran at the same time."""
        now = clock.mono_ns()
        open_now = [CallTime(call, started, None, now) for call, started in self._open.items()]
        every = [*self._past, *open_now]
        found = [one for one in every if one.has(moment)]
        # The file's time may be a little before the start of the call that wrote it.
        return found or [one for one in every if one.has(moment, _LATE_NS)][-1:]


def born_ns(path: bytes) -> int | None:
    """Return when a file or folder was created. None: the file system does not know."""
    try:
        library = ctypes.CDLL(None, use_errno=True)
        found = ctypes.create_string_buffer(_STATX_SIZE)
        if library.statx(_AT_FDCWD, path, 0, _BIRTH, found):
            return None
    except (OSError, AttributeError):
        return None  # another C library
    if not _MASK.unpack_from(found.raw)[0] & _BIRTH:
        return None
    seconds, nanoseconds = _TIME.unpack_from(found.raw, _BIRTH_AT)
    return int(seconds) * 1_000_000_000 + int(nanoseconds)


def older_folder(path: bytes, began: int) -> bytes:
    """Return the deepest folder above a path that existed before the run: a replay must not create the others early."""
    folder = os.path.dirname(path)
    while folder != b"/":
        born = born_ns(folder)
        if born is None or born < began - _LATE_NS:
            break
        folder = os.path.dirname(folder)
    return folder


def _wall(moment: int) -> int:
    return clock.wall_ns() - (clock.mono_ns() - moment)

"""Who else could still do something: threads that wait in ways we do not know, and child processes.

Knows frames, processor time and /proc. A stranger who has stood at one place for a while, while the
process had nothing to compute, is taken to wait for something that only time will bring.
"""

from __future__ import annotations

import os
import posix
from collections.abc import Callable
from types import FrameType

from playhead import clock, where

_PATIENCE_NS = 1_000_000_000
# For our own, who answer at once or wait for the program: those who play a taped process.
_SHORT_PATIENCE_NS = 20_000_000
_MOST_CPU = 0.2

# Our own thread that writes what waits: it does nothing that a program could notice.
_BACKGROUND = ("chunks.py",)
# The thread in which asyncio waits for a child: it is the child that counts.
_REAPERS = ("_do_waitpid",)


class Strangers:
    """`is_stand_in(pid)`: whether that child only plays a taped process."""

    def __init__(self, is_stand_in: Callable[[int], bool] | None = None) -> None:
        self.is_stand_in = is_stand_in or _nobody
        self._seen: dict[object, tuple[object, int, int]] = {}

    def is_idle(self, ident: int, frame: FrameType) -> bool:
        """Of a thread that is at `frame`, which we know nothing of."""
        place = (id(frame), frame.f_lasti)
        patience = _PATIENCE_NS
        root = inner = frame
        while root.f_back is not None:
            if where.is_own(inner.f_code.co_filename):
                inner = root.f_back
            root = root.f_back
        if inner.f_code.co_name in _REAPERS:
            return True
        if where.is_own(root.f_code.co_filename):
            if root.f_code.co_filename.endswith(_BACKGROUND):
                return True
            patience = _SHORT_PATIENCE_NS
        return self._has_stood(ident, place, patience)

    def children_are_idle(self) -> bool:
        try:
            posix.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return True  # there are none
        children = [one for pid in _children() if (one := _state_of(pid)) is not None]
        if any(state in "RD" for _, state, _ in children):
            self._seen.pop("children", None)
            return False
        waiting = [one for one in children if one[1] not in "ZX"]
        if not waiting:
            return True
        known = all(self.is_stand_in(pid) for pid, _, _ in waiting)
        return self._has_stood(
            "children", tuple(waiting), _SHORT_PATIENCE_NS if known else _PATIENCE_NS
        )

    def _has_stood(self, who: object, place: object, patience: int) -> bool:
        now, used = clock.mono_ns(), clock.cpu_ns()
        seen = self._seen.get(who)
        if seen is None or seen[0] != place:
            self._seen[who] = (place, now, used)
            return False
        _, since, before = seen
        if since == 0:
            return True  # and has stood there ever since
        if used - before > _MOST_CPU * (now - since) and now - since > _SHORT_PATIENCE_NS:
            self._seen[who] = (place, now, used)  # somebody computes: it may be this one
            return False
        if now - since < patience:
            return False
        self._seen[who] = (place, 0, 0)
        return True


def _nobody(pid: int) -> bool:  # noqa: ARG001  the signature is that of the question
    return False


def _children() -> list[int]:
    """Their pids; where the system does not tell, none are found and all are waited for."""
    found: list[int] = []
    try:
        for task in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{task}/children", "rb") as listed:
                found += map(int, listed.read().split())
    except OSError:
        return found
    return found


def _state_of(pid: int) -> tuple[int, str, int] | None:
    """The pid, R for one that runs, and what it has used of the processor; None: it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return pid, fields[0].decode(), int(fields[11]) + int(fields[12])

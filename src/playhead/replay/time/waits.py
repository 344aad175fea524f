"""Waits of a replay's threads: each has a deadline, or a place of the tape to wait for, or both."""

from __future__ import annotations

import _thread
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from playhead.replay.playhead import Gate
    from playhead.replay.points_table import Place

# The unhooked methods of C locks: a replay hooks the methods of locks, and a hooked lock here would wait for
# itself. A reentrant lock, because code that the garbage collector runs in between may read the time.
_take = _thread.RLock.acquire
_give = _thread.RLock.release


class Released(Protocol):
    """Waits of one thread for several places of the tape; see `loop_points.LoopState`."""

    @property
    def is_due(self) -> bool: ...

    def first(self) -> Place | None: ...

    def release(self, place: Place) -> None: ...

    def release_late(self) -> bool: ...


class RawGuard:
    """A lock of C that its thread may take again, whose methods no hook has replaced."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = _thread.RLock()

    def __enter__(self) -> None:
        _take(self._lock)

    def __exit__(self, *raised: object) -> None:
        _give(self._lock)


class ThreadWait:
    """A thread that waits. `is_stuck` means that its condition is still false. With a `gate` or a `loop` it
    also waits for the replay to reach a place of the tape.
    """

    __slots__ = ("deadline", "gate", "is_stuck", "loop")

    def __init__(
        self,
        deadline: int | None,
        is_stuck: Callable[[], bool],
        gate: Gate | None = None,
        loop: Released | None = None,
    ) -> None:
        self.deadline = deadline
        self.is_stuck = is_stuck
        self.gate = gate
        self.loop = loop

    def first(self) -> Place | None:
        """The earliest place of the tape that this thread waits for."""
        if self.gate is not None:
            return self.gate.first()
        return None if self.loop is None else self.loop.first()

    def is_released(self) -> bool:
        return self.loop is not None and self.loop.is_due

    def release(self, place: Place) -> None:
        if self.gate is not None:
            self.gate.open()
        elif self.loop is not None:
            self.loop.release(place)

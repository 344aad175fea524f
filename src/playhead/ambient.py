"""Clock and entropy as the program saw them: taped where they were read, served there again.

A reading is known by lane and place in the code, so that readings which a replay does not repeat (a
library that no longer opens a socket) do not shift the ones it does. Knows readings; not which
functions are hooked (`boundaries/ambient_*`).
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from types import FrameType
from typing import Any, Protocol, TypeVar

from playhead import clock, events, lanes, where
from playhead.events import Event
from playhead.recorder import Recorder

T = TypeVar("T")

_MOST_WAITING = 256
_LONGEST_WAIT_NS = 500_000_000


class Source(Protocol):
    """Where readings come from: the world (and onto the tape), or the tape."""

    def read(self, kind: str, frame: FrameType, live: Callable[[], Any]) -> Any: ...

    def flush(self) -> None: ...


class TapingSource:
    """Record: the real value is returned at once; it reaches the tape with the next call, or soon."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._lock = threading.Lock()
        self._waiting: dict[tuple[str, str, str], list[Any]] = {}
        self._count = 0
        self._last = clock.mono_ns()

    def read(self, kind: str, frame: FrameType, live: Callable[[], T]) -> T:
        value = live()
        key = (lanes.current.get().name, kind, where.fragment(frame))
        with self._lock:
            readings = self._waiting.get(key)
            if readings is None:
                readings = self._waiting[key] = []
            readings.append(value)
            self._count += 1
            due = self._count >= _MOST_WAITING
        if due or clock.mono_ns() - self._last > _LONGEST_WAIT_NS:
            self.flush()
        return value

    def flush(self) -> None:
        """Called before each call goes onto the tape, and at the end."""
        if not self._count:
            return
        with self._lock:
            waiting, self._waiting, self._count = self._waiting, {}, 0
            self._last = clock.mono_ns()
        if waiting:
            readings = [[lane, kind, at[1:-1], values] for (lane, kind, at), values in waiting.items()]
            self._recorder.add(events.AMBIENT, {"readings": readings}, '""')


class TapedSource:
    """Replay: each reading once, in order, by lane and place. What the tape does not have (the code
    reads the clock where it did not then) is made from what it does have, and counted."""

    def __init__(self, taped: list[Event], started_wall_ns: int) -> None:
        self._readings: dict[tuple[str, str, str], deque[Any]] = {}
        self._lock = threading.Lock()
        self.missed = 0
        self._now_ns = started_wall_ns
        self._since = clock.mono_ns()
        for event in taped:
            for lane, kind, at, values in _rows(event):
                self._readings.setdefault((lane, kind, at), deque()).extend(values)

    def read(self, kind: str, frame: FrameType, live: Callable[[], T]) -> T:
        key = (lanes.current.get().name, kind, where.fragment(frame)[1:-1])
        with self._lock:
            readings = self._readings.get(key)
            if readings:
                value: T = readings.popleft()
                if kind == "time_ns":
                    self.tick(int(value))  # type: ignore[call-overload]  # JSON kept it as a number
                elif kind == "time":
                    self.tick(int(float(value) * 1e9))  # type: ignore[arg-type]  # likewise
                return value
            self.missed += 1
        if kind == "time":
            return self.now_ns() / 1e9  # type: ignore[return-value]  # what time.time returns
        if kind == "time_ns":
            return self.now_ns()  # type: ignore[return-value]  # what time.time_ns returns
        return live()

    def tick(self, wall_ns: int) -> None:
        """The tape has come this far: time never runs back."""
        if wall_ns > self._now_ns:
            self._now_ns, self._since = wall_ns, clock.mono_ns()

    def now_ns(self) -> int:
        return self._now_ns + clock.mono_ns() - self._since

    def flush(self) -> None:
        return None


def _rows(event: Event) -> list[tuple[str, str, str, list[Any]]]:
    rows = event.data.get("readings") if isinstance(event.data, dict) else None
    return [
        (str(row[0]), str(row[1]), str(row[2]), row[3])
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, list) and len(row) == 4 and isinstance(row[3], list)
    ]


_source: Source | None = None


def source() -> Source | None:
    return _source


def begin(chosen: Source) -> None:
    global _source
    _source = chosen


def end(chosen: Source) -> None:
    global _source
    chosen.flush()
    if _source is chosen:
        _source = None


def read(kind: str, live: Callable[[], T], *, own_code_only: bool = False) -> T:
    """One reading by the caller's caller. `own_code_only`: readings by libraries are left alone."""
    chosen = _source
    if chosen is None:
        return live()
    frame = sys._getframe(2)
    if own_code_only and where.is_foreign(frame.f_code.co_filename):
        return live()
    return chosen.read(kind, frame, live)  # type: ignore[no-any-return]  # a reading is what live gives

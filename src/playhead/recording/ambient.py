"""Record the clock and entropy readings of the program, and serve them again in a replay.

A reading is identified by its lane and by the function that asked for it. So a reading that a replay does not repeat (a
library that no longer opens a socket) does not shift the others, and neither does an edit above the line. Knows
readings; does not know which functions are hooked (`hooks/ambient`).
"""

from __future__ import annotations

import _thread
import os
import sys

from playhead import clock, events
from playhead.encoding.readings import MOST_EXACT, ReadingRun
from playhead.host.lean import Protocol
from playhead.recording import lanes
from playhead.recording.encoder import NewEvent
from playhead.recording.lanes import Lane
from playhead.recording.recorder import Recorder
from playhead.recording.where import BEHALF, OWNERS, SCHEDULER, place_of, reader_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any, TypeVar

    T = TypeVar("T")

    # Makes a value from a source of bytes.
    Derive = Callable[[Callable[[int], bytes]], Any]


# Readings within this time share an event. A kill loses at most these readings, and no call depends on them: calls are
# written after the readings before them.
_TOGETHER_NS = 100_000_000
# Up to this many readings are written one by one.
_FEW = 16
# The maximum number of single readings that are kept before they are sorted by place.
_MOST_LOOSE = 4096

WALL = ("time", "time_ns", "now")
STEADY = ("monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns")
USED = ("process_time", "process_time_ns", "thread_time", "thread_time_ns")
CLOCKS = frozenset({*WALL, *STEADY, *USED})


class Source(Protocol):
    """A source of readings: the real clock (recorded), or the tape."""

    # The start of the recorded or served run, by the wall clock.
    began_ns: int

    @property
    def log(self) -> list[tuple[Lane, str, CodeType, Any]] | None:
        """Return the list that real readings are appended to; None if readings are served."""

    def read(
        self,
        kind: str,
        code: CodeType,
        live: Callable[[], Any],
        derive: Derive | None = None,
        lane: Lane | None = None,
    ) -> Any:
        """Return one reading. `derive` makes a reading that is not on the tape from bytes that are the same in each
        replay.
        """

    def pass_by(self, kind: str, live: Callable[[], Any], *, waits: bool) -> Any:
        """Return a reading of a steady clock that is never recorded: the reader waits for others (`waits`), or is a
        loop that implements waiting itself.
        """

    def settle(self) -> None:
        """Called after a reading was appended to `log`."""

    def flush(self) -> None: ...

    def start_anew(self) -> None:
        """Start again in a forked child: the parent writes the readings that it has not written yet."""


class TapingSource:
    """Records readings. The real value is returned at once, and is written before the next call, or soon.

    Readers share a list without a lock: appending is atomic, and so is taking its contents.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.log: list[tuple[Lane, str, CodeType, Any]] = []
        self.began_ns = clock.wall_ns()
        self._recorder = recorder
        self._busy = _thread.allocate_lock()
        self._runs: dict[tuple[str, str, str], ReadingRun] = {}
        self._spinning: set[tuple[str, str, str]] = set()
        self._due_ns = 0
        recorder.last_words.append(self.flush)

    def read(
        self,
        kind: str,
        code: CodeType,
        live: Callable[[], T],
        derive: Derive | None = None,
        lane: Lane | None = None,
    ) -> T:
        value = live()
        self.log.append((lane or lanes.current.get(), kind, code, value))
        self.settle()
        return value

    def pass_by(self, kind: str, live: Callable[[], T], *, waits: bool) -> T:
        return live()

    def settle(self) -> None:
        # The first after a pause is written at once: it may be the last thing the process does.
        if clock.mono_ns() >= self._due_ns:
            self.flush()
        elif len(self.log) >= _MOST_LOOSE:
            self._sort()

    def flush(self) -> None:
        """Write the readings so far. Called before each call is written, and at the end."""
        # Twice: the second time for readings that another thread could not write while this one was writing.
        for _ in range(2):
            if not self.log and not self._runs:
                return
            self._write()

    def _write(self) -> None:
        if not self._runs and len(self.log) <= _FEW and self._write_few():
            return
        self._sort()
        if not self._busy.acquire(blocking=False):
            return  # another thread is writing, or a signal handler interrupted this thread while it was writing
        try:
            runs, self._runs = self._runs, {}
            self._due_ns = clock.mono_ns() + _TOGETHER_NS
            self._spinning = {key for key, run in runs.items() if run.count > MOST_EXACT}
            rows = [[*key, run.packed()] for key, run in runs.items()]
            # Inside the lock: later readings of another thread must not be written before these.
            if rows:
                self._recorder.append(NewEvent(events.AMBIENT, {"readings": rows}))
        finally:
            self._busy.release()

    def _write_few(self) -> bool:
        """Write a few readings, each as a row of its own: between two calls a program mostly reads one or two
        clocks.
        """
        if not self._busy.acquire(blocking=False):
            return False
        try:
            count = len(self.log)
            rows = [
                [lane.name, kind, place_of(code), [value]]
                for lane, kind, code, value in self.log[:count]
            ]
            del self.log[:count]
            self._due_ns = clock.mono_ns() + _TOGETHER_NS
            self._spinning = set()
            self._recorder.append(NewEvent(events.AMBIENT, {"readings": rows}))
        finally:
            self._busy.release()
        return True

    def start_anew(self) -> None:
        self.log = []
        self._runs = {}
        self._busy = _thread.allocate_lock()
        self._recorder.last_words.append(self.flush)

    def _sort(self) -> None:
        if not self._busy.acquire(blocking=False):
            return
        try:
            count = len(self.log)
            taken = self.log[:count]
            del self.log[:count]
            found: dict[tuple[Lane, str, int], tuple[CodeType, list[Any]]] = {}
            for lane, kind, code, value in taken:
                key = (lane, kind, id(code))
                hit = found.get(key)
                if hit is None:
                    found[key] = (code, [value])
                else:
                    hit[1].append(value)
            for (lane, kind, _), (code, values) in found.items():
                self._put((lane.name, kind, place_of(code)), values)
        finally:
            self._busy.release()

    def _put(self, key: tuple[str, str, str], values: list[Any]) -> None:
        run = self._runs.get(key)
        if run is None:
            run = self._runs[key] = ReadingRun(
                is_clock=key[1] in CLOCKS, spins=key in self._spinning
            )
        run.add(values)


class _Nowhere:
    """The log of code that belongs to no run: it drops readings."""

    def append(self, reading: object, /) -> None:
        return


class ScopedSource:
    """The source of the run that the code running now belongs to, where a process has several runs.
    `find` returns it, or None for code that belongs to no run.
    """

    def __init__(self, find: Callable[[], Source | None]) -> None:
        self._find = find

    @property
    def began_ns(self) -> int:
        found = self._find()
        return clock.wall_ns() if found is None else found.began_ns

    @property
    def log(self) -> Any:
        found = self._find()
        return _NOWHERE if found is None else found.log

    def read(
        self,
        kind: str,
        code: CodeType,
        live: Callable[[], Any],
        derive: Derive | None = None,
        lane: Lane | None = None,
    ) -> Any:
        found = self._find()
        return live() if found is None else found.read(kind, code, live, derive, lane)

    def pass_by(self, kind: str, live: Callable[[], Any], *, waits: bool) -> Any:
        found = self._find()
        return live() if found is None else found.pass_by(kind, live, waits=waits)

    def settle(self) -> None:
        if (found := self._find()) is not None:
            found.settle()

    def flush(self) -> None:
        if (found := self._find()) is not None:
            found.flush()

    def start_anew(self) -> None:
        return  # each source does this itself


_NOWHERE = _Nowhere()

# The source that hooks read from: the one of the process, or a ScopedSource.
_source: Source | None = None
_of_process: Source | None = None
_scoped: ScopedSource | None = None


def source() -> Source | None:
    return _source


def of_process() -> Source | None:
    """Return the source for code that belongs to the run of the process."""
    return _of_process


def begin(chosen: Source) -> None:
    global _of_process  # noqa: PLW0603  one slot a process
    _of_process = chosen
    _choose()


def end(chosen: Source) -> None:
    global _of_process  # noqa: PLW0603  one slot a process
    chosen.flush()
    if _of_process is chosen:
        _of_process = None
        _choose()


def scope(find: Callable[[], Source | None] | None) -> None:
    """Let `find` decide which source is read from now on. None: the source of the process again."""
    global _scoped  # noqa: PLW0603  one slot a process
    _scoped = None if find is None else ScopedSource(find)
    _choose()


def _choose() -> None:
    global _source  # noqa: PLW0603  one slot a process
    # `began_ns` is that of a run: it is read, and never set.
    _source = _of_process if _scoped is None else _scoped  # type: ignore[assignment]


def flush() -> None:
    """Write the readings so far to the tape."""
    if _source is not None:
        _source.flush()


def read(kind: str, live: Callable[[], T], derive: Derive | None = None) -> T:
    """Return one reading, attributed to the code that called into the standard library or a hook of ours."""
    chosen = _source
    if chosen is None:
        return live()
    reader = reader_at(sys._getframe(1))
    return chosen.read(kind, reader, live, derive)  # type: ignore[no-any-return]  # as live


def read_once(kind: str, code: CodeType, live: Callable[[], T]) -> T:
    """A value that exists once per process, whichever code reads it first."""
    chosen = _source
    if chosen is None:
        return live()
    return chosen.read(kind, code, live, None, lanes.MAIN)  # type: ignore[no-any-return]  # as live


def wall_reader(kind: str, real: Callable[[], T], *, depth: int = 1) -> Callable[[], T]:
    """Replaces `real`, a wall clock; the reader is `depth` frames above. Written without helper functions,
    because programs read the clock in loops.

    Accepts and ignores arguments: a builtin in a class body (`clock = time.time`) does not become a method,
    but a function does, and gets the object.
    """
    getframe, lane = sys._getframe, lanes.current.get

    def read_clock(*_: object) -> T:
        chosen = _source
        if chosen is None:
            return real()
        code = getframe(depth).f_code
        if OWNERS[code.co_filename] == BEHALF:
            code = reader_at(getframe(depth))
        log = chosen.log
        if log is None:
            return chosen.read(kind, code, real)  # type: ignore[no-any-return]  # as real
        value = real()
        log.append((lane(), kind, code, value))
        chosen.settle()
        return value

    return read_clock


def steady_reader(kind: str, real: Callable[[], T]) -> Callable[[], T]:
    """Replace a steady clock. A duration that a program prints is recorded; readings that event loops, locks and pools
    make for themselves are not.
    """
    getframe, lane = sys._getframe, lanes.current.get

    def read_clock(*_: object) -> T:
        chosen = _source
        if chosen is None:
            return real()
        code = getframe(1).f_code
        log = chosen.log
        whose = OWNERS[code.co_filename]
        if whose:
            if log is not None:
                return real()
            return chosen.pass_by(kind, real, waits=whose != SCHEDULER)  # type: ignore[no-any-return]  # as real
        if log is None:
            return chosen.read(kind, code, real)  # type: ignore[no-any-return]  # as real
        value = real()
        log.append((lane(), kind, code, value))
        chosen.settle()
        return value

    return read_clock


def _start_anew() -> None:
    if _of_process is not None:
        _of_process.start_anew()


os.register_at_fork(after_in_child=_start_anew)

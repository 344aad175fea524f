"""Serve clock and entropy readings from the tape. Knows readings and the time of the replay; does not know which
functions are hooked.

Each reading is served once, in order, by lane and place. A reading that the tape does not have (the code reads the
clock in a new place) is derived from the tape, is the same in each replay, and is counted.
"""

from __future__ import annotations

import _thread
from collections.abc import Callable, Iterator
from itertools import chain
from types import CodeType
from typing import TYPE_CHECKING, Any

from playhead import clock
from playhead.encoding.readings import unpack
from playhead.events import Event
from playhead.host.later import Later
from playhead.recording import lanes
from playhead.recording.ambient import CLOCKS, STEADY, USED, WALL
from playhead.recording.lanes import Lane
from playhead.recording.where import place_of
from playhead.replay.time.virtual_time import VirtualTime

if TYPE_CHECKING:
    import hashlib

    from playhead.recording.ambient import Derive
else:
    hashlib = Later("hashlib")  # for readings that the tape does not have

Key = tuple[str, str, str]

_MISSING = object()
_NONE: Iterator[Any] = iter(())
_MOST_LINES = 20_000  # limits our memory when a program keeps creating lanes
_current_lane = lanes.current.get
# The unhooked C methods, because a replay hooks the methods of locks. A reentrant lock: the garbage collector may run
# while it is held and start code of the program that reads the clock.
_take, _give = _thread.RLock.acquire, _thread.RLock.release
_NEVER = float("inf")
# A clock advances with each reading; otherwise a loop that waits for it would never end.
_TICK_NS = 1_000


class TapedSource:
    """Answers from `taped`, the ambient events of a tape."""

    log = None

    def __init__(self, taped: list[Event], started_wall_ns: int, *, pace: bool = False) -> None:
        self.began_ns = started_wall_ns
        self.missed = 0
        self.served = 0
        self._lock = _thread.RLock()
        self._derived: dict[Key, int] = {}
        rows: dict[Key, list[list[Any]]] = {}
        for event in taped:
            for key, values in _rows(event):
                rows.setdefault(key, []).append(values)
        self._readings: dict[Key, Iterator[Any]] = {
            key: unpack(chain.from_iterable(lists)) for key, lists in rows.items()
        }
        # The same iterators by lane, kind, file and function.
        self._lines: dict[tuple[str, str, str, str], Iterator[Any]] = {}
        # The highest value that each clock has shown, in its own unit: how far the tape has advanced.
        self._latest: dict[str, float] = dict.fromkeys(CLOCKS, 0)
        self._is_behind = False
        # The steady clock at the start of the run, taken from the tape, so that served readings and derived ones come
        # from one clock.
        first = taped[0] if taped else None
        began = first.mono - (first.wall - started_wall_ns) if first else clock.mono_ns()
        self.time = VirtualTime(began_ns=began, pace=pace)
        self._wall_offset = started_wall_ns - began
        self._wall_ns = started_wall_ns
        self._steady_ns = began
        # The ticks added so far to readings of lanes that are ahead of the clock.
        self._ahead_ns = 0

    def read(
        self,
        kind: str,
        code: CodeType,
        live: Callable[[], Any],
        derive: Derive | None = None,
        lane: Lane | None = None,
    ) -> Any:
        name = (_current_lane() if lane is None else lane).name
        # The key is not the place, which is slow to compute, and not `id`, which raises an audit event for each call.
        line = self._lines.get((name, kind, code.co_filename, code.co_name))
        if line is None:
            line = self._line(name, kind, code)
        _take(self._lock)
        try:
            value = next(line, _MISSING)
            if value is not _MISSING:
                latest = self._latest.get(kind)
                if latest is None:
                    self.served += 1
                    return value
                # A tape is untrusted data: a clock must return a number, whatever the tape holds.
                if type(value) is float or type(value) is int:
                    self.served += 1
                    if latest < value < _NEVER:
                        self._latest[kind] = value
                        self._is_behind = True
                    return value
            if lane is None:
                self.missed += 1
            if kind in CLOCKS:
                return self._made(kind, live)
            if derive is None:
                return live()
            return derive(self._bytes_for((name, kind, place_of(code))))
        finally:
            _give(self._lock)

    def _line(self, name: str, kind: str, code: CodeType) -> Iterator[Any]:
        if len(self._lines) > _MOST_LINES:
            self._lines.clear()
        line = self._readings.get((name, kind, place_of(code)), _NONE)
        self._lines[name, kind, code.co_filename, code.co_name] = line
        return line

    def pass_by(self, kind: str, live: Callable[[], Any], *, waits: bool) -> Any:
        """Return the time of the replay to code that waits. To code that polls the clock, return a time that also
        advances.
        """
        if not self.time.drives or kind in USED:
            return live()
        if not waits:
            return _as(kind, self.time.moving_ns())
        # As for timeouts, a lane may be ahead of the clock, which stands still while the program computes. Its readings
        # must advance as well; otherwise a loop that polls until its deadline would never end.
        now, reached = self.time.ticking_ns(), _current_lane().reached_ns
        if reached > now:
            self._ahead_ns += _TICK_NS
            now = reached + self._ahead_ns
        return _as(kind, now)

    def settle(self) -> None:
        return None

    def flush(self) -> None:
        return None

    def start_anew(self) -> None:
        self._lock = _thread.RLock()

    def _made(self, kind: str, live: Callable[[], Any]) -> Any:
        if kind in USED:
            return live()
        if self._is_behind:
            self._catch_up()
        if kind in WALL:
            passed = self.time.now_ns() + self._wall_offset
            self._wall_ns = max(self._wall_ns + _TICK_NS, passed)
            return _as(kind, self._wall_ns)
        self._steady_ns = max(self._steady_ns + _TICK_NS, self.time.now_ns())
        return _as(kind, self._steady_ns)

    def _catch_up(self) -> None:
        """Advance the derived clocks to the latest reading from the tape, so that no derived reading lies before it."""
        self._is_behind = False
        latest = self._latest
        self._wall_ns = max(self._wall_ns, *(_ns(kind, latest[kind]) for kind in WALL))
        self._steady_ns = max(self._steady_ns, *(_ns(kind, latest[kind]) for kind in STEADY))

    def _bytes_for(self, key: Key) -> Callable[[int], bytes]:
        number = self._derived[key] = self._derived.get(key, 0) + 1
        seed = "\0".join((str(self.began_ns), *key, str(number))).encode("utf-8", "surrogatepass")
        return hashlib.shake_256(seed).digest


def _rows(event: Event) -> Iterator[tuple[Key, list[Any]]]:
    rows = event.data.get("readings") if isinstance(event.data, dict) else None
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, list) and len(row) == 4 and isinstance(row[3], list):
            yield (str(row[0]), str(row[1]), str(row[2])), row[3]


def _ns(kind: str, value: Any) -> int:
    if kind == "now":
        return int(value) * 1000
    return int(value) if kind.endswith("_ns") else round(value * 1e9)


def _as(kind: str, ns: int) -> Any:
    if kind == "now":
        return ns // 1000
    return ns if kind.endswith("_ns") else ns / 1e9

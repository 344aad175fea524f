"""Clock and entropy from the tape. Knows readings and the time of the replay; not who is hooked.

Each reading is served once, in order, by lane and place. What the tape does not have (the code reads
the clock where it did not then) is made from what it does have, the same in each replay, and counted.
"""

from __future__ import annotations

import _thread
import hashlib
from collections.abc import Callable, Iterator
from itertools import chain
from types import CodeType
from typing import TYPE_CHECKING, Any

from playhead import clock, lanes
from playhead.ambient import CLOCKS
from playhead.events import Event
from playhead.lanes import Lane
from playhead.readers import place_of
from playhead.readings import unpack
from playhead.replay.virtual_time import VirtualTime

if TYPE_CHECKING:
    from playhead.ambient import Derive

Key = tuple[str, str, str]

_MISSING = object()
# A clock that is read again and again moves on, or a loop that waits for it would never end.
_TICK_NS = 1_000


class TapedSource:
    """Answers from `taped`, the ambient events of a tape."""

    log = None

    def __init__(self, taped: list[Event], started_wall_ns: int, *, pace: bool = False) -> None:
        self.began_ns = started_wall_ns
        self.missed = 0
        self.served = 0
        self._lock = _thread.allocate_lock()
        self._derived: dict[Key, int] = {}
        rows: dict[Key, list[list[Any]]] = {}
        for event in taped:
            for key, values in _rows(event):
                rows.setdefault(key, []).append(values)
        self._readings: dict[Key, Iterator[Any]] = {
            key: unpack(chain.from_iterable(lists)) for key, lists in rows.items()
        }
        # The steady clock at that moment: the tape's own, so that what is served and what passes
        # by itself are readings of one clock.
        first = taped[0] if taped else None
        began = first.mono - (first.wall - started_wall_ns) if first else clock.mono_ns()
        self.time = VirtualTime(began_ns=began, pace=pace)
        self._wall_offset = started_wall_ns - began
        self._wall_ns = started_wall_ns
        self._steady_ns = began

    def read(
        self,
        kind: str,
        code: CodeType,
        live: Callable[[], Any],
        derive: Derive | None = None,
        lane: Lane | None = None,
    ) -> Any:
        key = ((lane or lanes.current.get()).name, kind, place_of(code))
        with self._lock:
            readings = self._readings.get(key)
            value = _MISSING if readings is None else next(readings, _MISSING)
            if value is not _MISSING and _fits(kind, value):
                self.served += 1
                self._follow(kind, value)
                return value
            if lane is None:
                self.missed += 1
            if kind in CLOCKS:
                return self._made(kind, live)
            if derive is None:
                return live()
            return derive(self._bytes_for(key))

    def pass_by(self, kind: str, live: Callable[[], Any], *, waits: bool) -> Any:
        """What waits sees the time of the replay; what spins by itself sees it move on, too."""
        if not self.time.drives or kind.startswith(("process", "thread")):
            return live()
        return _as(kind, self.time.now_ns() if waits else self.time.moving_ns())

    def settle(self) -> None:
        return None

    def flush(self) -> None:
        return None

    def start_anew(self) -> None:
        self._lock = _thread.allocate_lock()

    def _follow(self, kind: str, value: Any) -> None:
        """The tape has come this far: what is made up later must not lie before it."""
        if kind in ("time", "time_ns", "now"):
            self._wall_ns = max(self._wall_ns, _ns(kind, value))
        elif kind in CLOCKS:
            self._steady_ns = max(self._steady_ns, _ns(kind, value))

    def _made(self, kind: str, live: Callable[[], Any]) -> Any:
        if kind.startswith(("process", "thread")):
            return live()
        if kind in ("time", "time_ns", "now"):
            passed = self.time.now_ns() + self._wall_offset
            self._wall_ns = max(self._wall_ns + _TICK_NS, passed)
            return _as(kind, self._wall_ns)
        self._steady_ns = max(self._steady_ns + _TICK_NS, self.time.now_ns())
        return _as(kind, self._steady_ns)

    def _bytes_for(self, key: Key) -> Callable[[int], bytes]:
        number = self._derived[key] = self._derived.get(key, 0) + 1
        told = "\0".join((str(self.began_ns), *key, str(number))).encode("utf-8", "surrogatepass")
        return hashlib.shake_256(told).digest


def _rows(event: Event) -> Iterator[tuple[Key, list[Any]]]:
    rows = event.data.get("readings") if isinstance(event.data, dict) else None
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, list) and len(row) == 4 and isinstance(row[3], list):
            yield (str(row[0]), str(row[1]), str(row[2])), row[3]


def _fits(kind: str, value: Any) -> bool:
    """A tape is data from a stranger: a clock gives numbers, whatever stands there."""
    return type(value) in (int, float) if kind in CLOCKS else True


def _ns(kind: str, value: Any) -> int:
    if kind == "now":
        return int(value) * 1000
    return int(value) if kind.endswith("_ns") else round(value * 1e9)


def _as(kind: str, ns: int) -> Any:
    if kind == "now":
        return ns // 1000
    return ns if kind.endswith("_ns") else ns / 1e9

"""Points: the moments at which one lane learns something that another lane or the world decided.

A recorded process appends each point to one list, so that its place in the list is its place in the order of the
process. The list is written to the tape in packed entries a few milliseconds later. Knows the form of these entries;
does not know which code notes a point (`hooks/order`, `crossing`), nor how a replay keeps the order
(`replay/playhead`).

    {"from": ns, "points": [row, row, …]}

    [step, loop, turn, call, at_ns, index, queued]   a call: its head, a piece, or its end
    [step, loop, turn, lane, kind, number, detail]   any other event in a lane

`step` is the time since the previous point, in nanoseconds. `loop` and `turn` name the iteration of the event loop in
which the point was taken; both are 0 outside of event loops. `number` counts the points of that kind in the lane, from
1. `index` is the number of callbacks that the loop had already run in that iteration. `queued` is the number of
callbacks that the loop had already scheduled for the next iteration. Both are left out outside of event loops.
"""

from __future__ import annotations

import _thread
import os
import sys

from playhead import events
from playhead.clock import mono_ns
from playhead.host.lean import Protocol
from playhead.recording import lanes
from playhead.recording.encoder import NewEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from playhead.events import Ref
    from playhead.recording.lanes import Lane
    from playhead.recording.recorder import Recorder

# Events that a lane can learn of. A cancelled timer has no place in the order, but a replay must know that it
# never fired.
TIMER, CANCELLED, SOON = "timer", "cancelled", "soon"
OUTPUT, GET, PUT, WOKEN, SLEPT, DONE = "output", "get", "put", "woken", "slept", "done"
# The detail of a callback that the loop's own thread gave to `call_soon_threadsafe`. For a callback of another thread
# the detail is the number of callbacks that the loop ran before it in its turn.
FROM_LOOP = "loop"
ACQUIRED, RECEIVED, CLOSED, AWAITED = "acquired", "received", "closed", "awaited"
# An SQLite statement has finished; the program has polled pipes of other processes (the detail says which were ready).
STATEMENT, PIPES, POLLED = "statement", "pipes", "polled"
# The program got an item from a queue between processes; the detail is a digest of the item.
ITEM = "item"
# The detail of a wait that ended without success.
IN_VAIN = "in vain"
# The program ends because of Ctrl-C.
INTERRUPT = "interrupt"
# A handler of the program ran; the number of the signal follows. The detail is the number of steps before it.
SIGNAL = "signal"
# Marks that the tape has locks; and that a lock was taken by another lane than the previous time.
LOCKS, LOCK = "locks", "lock"

# A line that an HTTP library logged about its connections; the stream follows. It has no place in the order, because a
# replay opens no connections.
LOG = "log"

_MOST_LOOSE = 2048
_MOST_NAMES = 4096
_NO_TURN = (0, 0)
_RUN_ONCE = "_run_once"


class Scopes(Protocol):
    """The logs of several runs that are open in one process."""

    def log_of_lane(self, lane: Lane | None) -> PointLog | None:
        """The log of the run that a lane belongs to; without a lane, of the current one."""

    def log_of(self, recorder: Recorder | None) -> PointLog | None:
        """The log of the run that this recorder writes."""


class PointLog:
    """The points of one process before they are written to the tape. `flush_soon(log)` makes another thread write them
    within a few milliseconds.
    """

    def __init__(self, recorder: Recorder, flush_soon: Callable[[PointLog], None]) -> None:
        # Threads share the list without a lock: appending to it is atomic, and so is taking from it.
        self.entries: list[tuple[Any, ...]] = []
        self._recorder = recorder
        self._flush_soon = flush_soon
        self._busy = _thread.allocate_lock()
        self._scheduled = False
        self._names: dict[str, str] = {}
        recorder.last_words.append(self.flush)

    def add(self, entry: tuple[Any, ...]) -> None:
        self.entries.append(entry)
        if not self._scheduled:
            self._scheduled = True
            self._flush_soon(self)
        elif len(self.entries) >= _MOST_LOOSE:
            self.flush()

    def flush(self) -> None:
        """Write the points so far. Recording fails open: the recorder counts points that cannot be written."""
        self._scheduled = False
        if not self.entries or not self._busy.acquire(blocking=False):
            return
        try:
            count = len(self.entries)
            taken = self.entries[:count]
            del self.entries[:count]
            # Within the lock: the points of another thread are later and must follow on the tape.
            data = pack(taken, self._clean)
            self._recorder.append(NewEvent(events.ORDER, data, '""', None, None, True))
        finally:
            self._busy.release()

    def _clean(self, name: str) -> str:
        """Return the name of a lane or of a callback, without secrets. Cached: a run has few of them, and searching
        every point would cost more than noting it.
        """
        known = self._names.get(name)
        if known is None:
            redactor = self._recorder.redactor
            known = name if redactor is None else redactor.clean_text(name)
            if len(self._names) >= _MOST_NAMES:
                self._names.clear()
            self._names[name] = known
        return known

    def add_log_line(self, lane: str, stream: str, text: str) -> None:
        """Note that an HTTP library has logged this text to stdout or stderr."""
        redactor = self._recorder.redactor
        clean = text if redactor is None else redactor.clean_text(text)
        self.add((mono_ns(), _NO_TURN, lane, f"{LOG}:{stream}", 1, clean))

    def start_anew(self) -> None:
        """Start again in a forked child: the parent writes the points so far."""
        self.entries = []
        self._busy = _thread.allocate_lock()
        self._scheduled = False
        self._recorder.last_words.append(self.flush)


def pack(entries: list[tuple[Any, ...]], clean: Callable[[str], str] = str) -> dict[str, Any]:
    """Return the data of an `order` event. The inverse is `unpack`. `clean` removes secrets from names."""
    began = before = entries[0][0]
    rows = []
    for now, turn, who, what, *rest in entries:
        if type(who) is str:
            rows.append([now - before, *turn, clean(who), clean(what), *rest])
        else:
            rows.append([now - before, *turn, who, what, *rest])
        before = now
    return {"from": began, "points": rows}


def unpack(data: Any) -> list[list[Any]]:
    """Return the rows of an `order` event with absolute times. A tape is untrusted data: a row that is not well formed
    is dropped.
    """
    rows = data.get("points") if isinstance(data, dict) else None
    at = data.get("from") if isinstance(data, dict) else None
    if not isinstance(rows, list) or type(at) is not int:
        return []
    found = []
    for row in rows:
        if isinstance(row, list) and len(row) >= 5 and all(type(one) is int for one in row[:3]):
            at += row[0]
            found.append([at, *row[1:]])
    return found


_log: PointLog | None = None
# Where a process has several runs: finds the log of each.
_scoped: Scopes | None = None
# The running event loop of this thread; None before asyncio was imported.
_running: Callable[[], Any] | None = None


# The main thread, and its steps: how often it began or finished printing, or began a call. A signal comes between two
# steps.
main_thread = _thread.get_ident()
steps = 0


def begin(log: PointLog) -> None:
    global _log, steps
    _log, steps = log, 0


def end() -> None:
    global _log  # noqa: PLW0603  one slot a process
    if _log is not None:
        _log.flush()
    _log = None


def active() -> PointLog | None:
    """Return the log of the run that the code running now belongs to; None if no points are noted."""
    return _log if _scoped is None else _scoped.log_of_lane(None)


def of_process() -> PointLog | None:
    """Return the log for code that belongs to the run of the process."""
    return _log


def scope(scopes: Scopes | None) -> None:
    """Let `scopes` decide from now on in which log a point is noted. None: the log of the process again."""
    global _scoped  # noqa: PLW0603  one slot a process
    _scoped = scopes


def watch_loops(running: Callable[[], Any]) -> None:
    """Set the function that returns the running loop of this thread, or None, after asyncio was imported."""
    global _running  # noqa: PLW0603  one slot a process
    _running = running


def turn() -> tuple[int, int]:
    """Return the number of the event loop that runs in this thread, and of its iteration."""
    loop = None if _running is None else _running()
    return _NO_TURN if loop is None else loop.__dict__.get("_playhead_turn", _NO_TURN)


def place_in_turn() -> tuple[int, int] | None:
    """Return how many callbacks the event loop of this thread has already run in its iteration, and how many it has
    already scheduled for the next one; None if the loop is not asyncio's.

    Two tasks that wait for different things are ready in the same iteration, and the order in which they run decides
    what the program prints. `_run_once` counts its callbacks in the variables `i` and `ntodo` (CPython 3.10 to 3.14). A
    count of our own would cost a hook in every callback.
    """
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == _RUN_ONCE:
            known = frame.f_locals
            index, count = known.get("i"), known.get("ntodo")
            if type(index) is not int or type(count) is not int:
                return None
            return index, len(known["self"]._ready) - (count - index - 1)  # noqa: SLF001  asyncio has no other way
        frame = frame.f_back
    return None


def note_call(call: Ref, at_ns: int, now: int, recorder: Recorder | None = None) -> None:
    """Note that the head, a piece or the end of a call on this recorder's tape has arrived, `at_ns` after the call
    began. The current lane does not decide to which run it belongs: a thread without a run may read the answer.
    """
    log = _log if _scoped is None else _scoped.log_of(recorder)
    if log is None or type(call) is not int:
        return
    here = _NO_TURN if _running is None else turn()
    where = place_in_turn() if here[0] else None
    log.add((now, here, call, at_ns) if where is None else (now, here, call, at_ns, *where))


def note(lane: Lane, kind: str, detail: Any = None, number: int = 0) -> None:
    """Note a point of this lane. Without a number it is the next point of its kind there. Events inside a tool have no
    place, because a replay does not run the tool.
    """
    log = _log if _scoped is None else _scoped.log_of_lane(lane)
    if log is not None and lanes.printing.get() is None:
        log.add((mono_ns(), turn(), lane.name, kind, number or lane.count(kind), detail))


def _start_anew() -> None:
    global main_thread  # noqa: PLW0603  one a process
    main_thread = _thread.get_ident()
    if _log is not None:
        _log.start_anew()


os.register_at_fork(after_in_child=_start_anew)

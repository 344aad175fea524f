"""Points: the moments at which one lane learns something that another lane or the world decided.

A recorded process appends each point to one list, so that its place in the list is its place in the order of the
process. The list is written to the tape in packed entries a few milliseconds later. Knows the form of these entries;
does not know which code notes a point (`hooks/order`, `crossing`), nor how a replay keeps the order
(`replay/playhead`).

    {"from": ns, "points": [row, row, …]}

    [step, loop, turn, call, at_ns, index, queued, behind]   a call: its head, a piece, or its end
    [step, loop, turn, lane, kind, number, detail]           any other event in a lane

`step` is the time since the previous point, in nanoseconds. `loop` and `turn` name the iteration of the event loop in
which the point was taken; both are 0 outside of event loops. `number` counts the points of that kind in the lane, from
1. `index` is the number of callbacks that the loop had already run in that iteration. `queued` is the number of
callbacks that the loop had already scheduled for the next iteration. Both are left out outside of event loops. `behind`
names the callbacks that the loop was about to run after this one in the same iteration.
"""

from __future__ import annotations

import _thread
import io
import os

# The C module: `operator` itself would be loaded in every recorded process for this one name.
from _operator import methodcaller

from playhead import events
from playhead.clock import mono_ns
from playhead.host.lean import Protocol, partial
from playhead.host.loop_frames import place_in_turn
from playhead.recording import lanes
from playhead.recording.encoder import NewEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from playhead.events import Ref
    from playhead.recording.lanes import Lane
    from playhead.recording.recorder import Recorder

# An event loop began to run in this lane; the row has its number. It has no place in the order. Loops of several
# threads begin in any order, so a replay finds the number of a loop by its lane.
LOOP = "loop begins"
# Events that a lane can learn of. A cancelled timer has no place in the order, but a replay must know that it
# never fired.
TIMER, CANCELLED, SOON = "timer", "cancelled", "soon"
OUTPUT, GET, PUT, WOKEN, SLEPT, DONE = "output", "get", "put", "woken", "slept", "done"
# The detail of a callback that was passed to `call_soon_threadsafe` is the number of callbacks that the loop ran before
# it in its turn. If the loop's own thread passed it, the detail is -1 minus that number, or this word if the number is
# not known.
FROM_LOOP = "loop"
# `order_slot.job_end` makes the detail of `DONE`. `STARTED`: the pool started a worker when this job was submitted.
# `WITHDRAWN`: the program cancelled this job before a worker took it. Both have no place in the order.
STARTED, WITHDRAWN = "started", "withdrawn"
# The program has waited for any child of its own forks. The detail is the number of the fork, 0 if none had ended, None
# for other children. It has no place in the order.
REAPED = "reaped"
ACQUIRED, RECEIVED, CLOSED, AWAITED = "acquired", "received", "closed", "awaited"
# The program gave the future of a job a callback; the detail is `DONE` if the job was done, so that it ran at once.
CALLBACK = "callback"
# An SQLite statement has finished; the program has polled pipes of other processes (the detail says which were ready).
STATEMENT, PIPES, POLLED, LOOKED = "statement", "pipes", "polled", "looked"
# The program got an item from a queue between processes; the detail is a digest of the item.
ITEM = "item"
# The detail of a wait that ended without success.
IN_VAIN = "in vain"
# The main thread has ended, and with it the program, if there are other threads.
ENDED = "ended"
# The program ends because of Ctrl-C.
INTERRUPT = "interrupt"
# A handler of the program ran; the number of the signal follows. The detail is a list with the number of steps before
# it, and a 1 if the handler of the signal before it had not begun yet. (In early tapes the detail is a number, which
# counts steps differently.)
SIGNAL = "signal"
# Text of this process has left for stdout or stderr, while other processes of the program print there, too. The lane is
# that of the main thread. It has no place in the order of the process: see `print_turns`. With the detail `TAKEN` the
# process has not printed, but taken an item from a queue that several processes read.
PRINTED = "printed"
TAKEN = "taken"
# Marks that the tape has locks; and that a lock was taken by another lane than the previous time.
LOCKS, LOCK = "locks", "lock"

# A line that an HTTP library logged about its connections; the stream follows. It has no place in the order, because a
# replay opens no connections.
LOG = "log"

_MOST_LOOSE = 2048
_MOST_NAMES = 4096
_NO_TURN = (0, 0)
# How long the end of a process waits for a thread that is writing points.
_LONGEST_WRITE_S = 5.0


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
        self._writer = 0
        self._names: dict[str, str] = {}
        recorder.last_words.append(self.flush_last)

    def add(self, entry: tuple[Any, ...]) -> None:
        self.entries.append(entry)
        if not self._scheduled:
            self._scheduled = True
            self._flush_soon(self)
        elif len(self.entries) >= _MOST_LOOSE:
            self.flush()

    def add_signal(self, entry: tuple[Any, ...], detail: list[int], mark: list[None]) -> None:
        """Add an entry whose detail gets the number of steps so far, and append to `mark`. Another signal handler runs
        before all of this or after it, because `extend` runs C code only.
        """
        flags, detail[:] = list(detail), []
        count = _call_each((_steps.tell, *(partial(int, flag) for flag in flags)))
        acts = (
            partial(detail.extend, count),
            partial(self.entries.append, entry),
            partial(mark.append, None),
        )
        [].extend(_call_each(acts))
        if not self._scheduled:
            self._scheduled = True
            self._flush_soon(self)

    def flush(self) -> None:
        """Write the points so far. Recording fails open: the recorder counts points that cannot be written."""
        self._scheduled = False
        if self.entries and self._busy.acquire(blocking=False):
            self._write()

    def flush_last(self) -> None:
        """Write the points so far, after another thread that is writing some: the tape is closed next, and that thread
        ends with the process.
        """
        if self._writer == _thread.get_ident():
            return  # a signal handler ends the process while this thread writes
        if self._busy.acquire(timeout=_LONGEST_WRITE_S):
            self._write()

    def _write(self) -> None:
        """Write the points. The caller has acquired `_busy`, which is released here."""
        self._writer = _thread.get_ident()
        try:
            count = len(self.entries)
            taken = self.entries[:count]
            del self.entries[:count]
            if taken:
                # Within the lock: the points of another thread are later and must follow on the tape.
                data = pack(taken, self._clean)
                self._recorder.append(NewEvent(events.ORDER, data, '""', None, None, True))
        finally:
            self._writer = 0
            self._busy.release()

    def _clean(self, name: str) -> str:
        """Return the name of a lane or of a callback, without secrets. Cached: a run has few of them, and searching
        every point would cost more than noting it. Not searched: numbered lanes. Each job has one of its own, and a
        search takes 5 us.
        """
        known = self._names.get(name)
        if known is None:
            if _is_numbered(name):
                return name
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
        self._writer = 0
        self._scheduled = False
        self._recorder.last_words.append(self.flush_last)


def _is_numbered(lane: str) -> bool:
    """Return whether the name of a lane consists of numbers of ours (`main/3/~1`): then it holds no secret."""
    first, *parts = lane.split("/")
    if first != "main" or not lane.isascii():
        return False
    for part in parts:
        number = part[1:] if part[:1] in ("~", "p", "t", "w") else part
        if not number.isdecimal() or len(number) > 9:
            return False
    return True


def pack(entries: list[tuple[Any, ...]], clean: Callable[[str], str] = str) -> dict[str, Any]:
    """Return the data of an `order` event. The inverse is `unpack`. `clean` removes secrets from names."""
    began = before = entries[0][0]
    rows = []
    for now, turn, who, what, *rest in entries:
        if type(who) is str:
            rows.append([now - before, *turn, clean(who), clean(what), *rest])
        elif len(rest) > 2:
            names = [clean(name) for name in rest[2]]
            rows.append([now - before, *turn, who, what, *rest[:2], names])
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
_trio_turn: Callable[[], tuple[int, int]] | None = None
# The loop, its turn, and the index of the callback in which the last point of a call was noted.
_last_step = (0, 0, 0)


# The main thread, and its steps: how often it has printed or begun a call. A signal comes between two steps. The
# number is the position of a stream without content: moving it is one call of C code, so no handler runs in the middle.
main_thread = _thread.get_ident()
_steps = io.BytesIO()
count_step = partial(_steps.seek, 1, io.SEEK_CUR)
_call_each = partial(map, methodcaller("__call__"))


def steps() -> int:
    return _steps.tell()


def forget_steps() -> None:
    _steps.seek(0)


def count_with(act: Callable[[], Any]) -> Any:
    """Call `act`, a function in C, and count a step. A signal handler of the program runs before both or after both,
    because Python code does not run between them.
    """
    results: list[Any] = []
    # One call of C code: the loop of a list display or of an unpacking would let a handler run.
    results.extend(_call_each((act, count_step)))
    return results[0]


def begin(log: PointLog) -> None:
    global _log  # noqa: PLW0603  one slot a process
    _log = log
    forget_steps()


def end() -> None:
    global _log  # noqa: PLW0603  one slot a process
    if _log is not None:
        _log.flush_last()
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


def watch_trio(turn: Callable[[], tuple[int, int]]) -> None:
    """Set the function that returns the turn of the trio run in this thread, after trio was imported."""
    global _trio_turn  # noqa: PLW0603  one slot a process
    _trio_turn = turn


def turn() -> tuple[int, int]:
    """Return the number of the event loop that runs in this thread, and of its iteration."""
    loop = None if _running is None else _running()
    if loop is None:
        return _NO_TURN if _trio_turn is None else _trio_turn()
    return loop.__dict__.get("_playhead_turn", _NO_TURN)  # type: ignore[no-any-return]


def note_call(call: Ref, at_ns: int, now: int, recorder: Recorder | None = None) -> None:
    """Note that the head, a piece or the end of a call on this recorder's tape has arrived, `at_ns` after the call
    began. The current lane does not decide to which run it belongs: a thread without a run may read the answer.
    """
    log = _log if _scoped is None else _scoped.log_of(recorder)
    if log is None or type(call) is not int:
        return
    here = turn()
    where = place_in_turn() if here[0] else None
    if where is None:
        log.add((now, here, call, at_ns))
        return
    entry: tuple[Any, ...] = (now, here, call, at_ns, where.index, where.queued)
    global _last_step  # noqa: PLW0603  one slot a process
    # The other points of the same callback have the same neighbours.
    if _last_step != (step := (*here, where.index)):
        _last_step = step
        entry += (where.behind(lanes.current, lanes.printing),)
    log.add(entry)


def note(lane: Lane, kind: str, detail: Any = None, number: int = 0) -> None:
    """Note a point of this lane. Without a number it is the next point of its kind there. Events inside a tool have no
    place, because a replay does not run the tool.
    """
    log = _log if _scoped is None else _scoped.log_of_lane(lane)
    if log is not None and lanes.printing.get() is None:
        log.add((mono_ns(), turn(), lane.name, kind, number or lane.count(kind), detail))


def note_loop(lane: Lane, number: int) -> None:
    """Note that the event loop with this number begins to run in this lane."""
    log = _log if _scoped is None else _scoped.log_of_lane(lane)
    if log is not None and lanes.printing.get() is None:
        log.add((mono_ns(), (number, 0), lane.name, LOOP, lane.count(LOOP), None))


def note_signal(number: int, mark: list[None], *, is_before: bool) -> None:
    """Note that a handler of the program is about to run, also in the middle of a tool. `mark` grows when the point is
    noted. `is_before`: the handler of the signal before it has not begun.
    """
    log, lane = active(), lanes.MAIN
    if log is not None:
        kind, detail = f"{SIGNAL}:{number}", [1] if is_before else []
        entry = (mono_ns(), turn(), lane.name, kind, lane.count(kind), detail)
        log.add_signal(entry, detail, mark)


def _start_anew() -> None:
    global main_thread  # noqa: PLW0603  one a process
    main_thread = _thread.get_ident()
    if _log is not None:
        _log.start_anew()


os.register_at_fork(after_in_child=_start_anew)

"""Replay the order in which lanes acquire the program's locks.

The tape has, for each lock, which lane acquired it the first time, the second time, and so on (`noted_locks`). A lane
that is not the next one waits until the lanes before it have released the lock.

A tape that was recorded on a machine without a compiler has no locks, so a replay has to guess. A lock that threads
hold while they print, make a call or use a queue decides the order of these points. So a thread acquires a lock only
when its own next point on the tape is due: then no other thread has to come first. A line of the program that has
acquired a lock many times without passing a point under it acquires it at once from then on: waiting is slow, and
orders nothing there.
"""

from __future__ import annotations

import _thread
import sys
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from playhead.recording import lanes, order_slot, points
from playhead.recording.where import OWNERS, PROGRAM, package_of
from playhead.replay.playhead import Gate
from playhead.replay.points_table import Place

if TYPE_CHECKING:
    from playhead.replay.playhead import Playhead

# The place of a thread that waits for another lane, and not for a point. It is later than every place on the tape.
_AFTER_ALL = Place("", 0, [0, 0, 0, "", "lock"])
_AFTER_ALL.rank = sys.maxsize

# For each line of the program: how often in a row it has held a lock without passing a point.
_idle: dict[tuple[Any, int], int] = {}
_MOST_IDLE = 100
# The locks that each thread holds: the lock, the line that took it, and the next point at that time.
_held: dict[int, list[tuple[Any, tuple[Any, int], Any]]] = {}

# Packages whose locks are held around writes to stdout and stderr, and the files that were looked up.
_PRINTERS = frozenset({"logging", "loguru", "tqdm"})
_printers: dict[str, bool] = {}
# Points that they pass under these locks: `QueueHandler` puts its lines into a queue.
_UNDER_LOCK = (points.OUTPUT, points.PUT)

# The lane that each thread works for. If it is None or missing, the thread's locks are not counted.
_owners: dict[int, lanes.Lane | None] = {}
_named: WeakKeyDictionary[Any, LockTurns] = WeakKeyDictionary()


class LockTurns:
    """The order in which lanes acquire one lock. `runs` has the number of an acquisition, and the lane that acquired
    the lock from then on.
    """

    def __init__(self, runs: list[tuple[int, str]]) -> None:
        self._runs = runs
        self._at = 0
        self._count = 0
        self._gates: dict[str, Gate] = {}
        # Whether the program has departed from the tape, so that the next lane is not known.
        self._is_lost = not runs

    def wait(self, head: Playhead, lane: str) -> None:
        """Wait until it is this lane's turn."""
        if self._is_lost or self._next() == lane:
            return
        gate = self._gates[lane] = Gate(_AFTER_ALL, is_before=True)
        # Test again: a thread may have released the lock before it could see the gate.
        if self._next() != lane:
            head.time.wait_at(gate)
        self._gates.pop(lane, None)
        # True if every thread waits and the next lane is not among them.
        self._is_lost = self._next() != lane

    def take(self) -> None:
        self._count += 1

    def give_back(self) -> None:
        gate = self._gates.pop(self._next(), None)
        if gate is not None:
            gate.open()

    def _next(self) -> str:
        """Return the lane that acquires the lock next on the tape."""
        runs, at = self._runs, self._at
        while at + 1 < len(runs) and runs[at + 1][0] <= self._count + 1:
            at += 1
        self._at = at
        return runs[at][1] if runs else ""


def know(lock: Any, name: str) -> None:
    """Register a lock that the program has made."""
    head = order_slot.active()
    if head is not None and head.table.has_locks:
        _named[lock] = LockTurns(head.table.lock_runs(name))


def is_ordered(lock: Any) -> bool:
    """Return whether the tape has the order in which lanes acquire this lock."""
    return lock in _named


def own_thread(lane: lanes.Lane | None) -> lanes.Lane | None:
    """Set the lane that this thread works for, and return the previous one."""
    me = _thread.get_ident()
    before = _owners.get(me)
    _owners[me] = lane
    return before


def before_acquire(lock: Any) -> None:
    """Wait until it is this thread's turn to acquire the lock."""
    head = order_slot.active()
    if head is None or not lanes.have_threads() or lanes.is_carried():
        return
    if head.table.has_locks:
        turns, lane = _turns(lock)
        if turns is not None and lane is not None:
            turns.wait(head, lane.name)
        elif (
            turns is None
            and _is_printer(_file_of(sys._getframe(1).f_back))
            and lock is not _lock_of_loggers()
        ):
            _await_output(head)
        return
    line = _line_of_program(lock)
    if line is None:
        return
    place = head.ahead(lanes.current.get().name)
    most = _MOST_IDLE if type(line[0]) is not int else 1
    # The thread of an event loop does not wait here: its other tasks could not reach their points.
    if place is not None and _idle.get(line, 0) < most and order_slot.loop_here() is None:
        head.await_turn(place)
    _held.setdefault(_thread.get_ident(), []).append((lock, line, place))


def _file_of(frame: Any) -> str:
    """Return the file of a frame. Empty if C code acquires a lock while an object is finalised: there is no frame."""
    return "" if frame is None else str(frame.f_code.co_filename)


def _is_printer(file: str) -> bool:
    """Return whether this file belongs to a library that prints under its own lock. The tape lacks these locks."""
    known = _printers.get(file)
    if known is None:
        package = package_of(file) or file.rpartition("/")[0].rpartition("/")[2]
        known = _printers[file] = package in _PRINTERS
    return known


def _lock_of_loggers() -> Any:
    """Return the lock of `logging` itself. No handler writes under it, and event loops take it when they start: a
    thread that waited there for its next write would never start the calls that come before the write.
    """
    return getattr(sys.modules.get("logging"), "_lock", None)


def _await_output(head: Playhead) -> None:
    """If the next point of the thread is a write, or an item for a listener thread, wait until it is due.

    A thread that acquired the lock earlier would block the threads that print before it. An event loop may wait here
    as well, because the write would block it for the same points.
    """
    place = head.ahead(lanes.current.get().name)
    if place is None or place.what[1] not in _UNDER_LOCK:
        return
    state = order_slot.loop_here()
    first = None if state is None else state.first()
    if first is None or first.rank > place.rank:
        head.await_turn(place)


def before_restore(lock: Any) -> None:
    """Wait for the turn of a thread that acquires the lock of a condition again, after it has waited for it."""
    head = order_slot.active()
    if head is not None and head.table.has_locks and not lanes.is_carried():
        turns, lane = _turns(lock)
        if turns is not None and lane is not None:
            turns.wait(head, lane.name)


def after_acquire(lock: Any) -> None:
    """Count an acquisition of the lock. An RLock that the thread already holds does not count again."""
    turns, lane = _turns(lock)
    if turns is not None and lane is not None:
        turns.take()


def after_release(lock: Any) -> None:
    """Let the next lane acquire the lock, now that the thread has released it."""
    turns, _ = _turns(lock)
    if turns is not None:
        turns.give_back()
        return
    # Whether the thread passed a point meanwhile decides whether this line waits the next time.
    held = _held.get(_thread.get_ident())
    if not held or held[-1][0] is not lock:
        return
    _, line, place = held.pop()
    if place is not None:
        _idle[line] = 0 if place.passed else _idle.get(line, 0) + 1


def _turns(lock: Any) -> tuple[LockTurns | None, lanes.Lane | None]:
    turns = _named.get(lock) if _named else None
    return turns, None if turns is None else _owners.get(_thread.get_ident())


def _line_of_program(lock: Any) -> tuple[Any, int] | None:
    """Return the line of the program that acquires the lock, directly or through a condition; None if a library
    acquires it. The two frames above this one are `before_acquire` and the hook of the lock.
    """
    frame = sys._getframe(2).f_back
    if frame is None:
        return None
    is_condition = frame.f_code.co_name == "__enter__" and frame.f_back is not None
    if is_condition and frame.f_back is not None:
        frame = frame.f_back
    if OWNERS[frame.f_code.co_filename] != PROGRAM:
        return None
    # A thread passes its points in the wait for a condition, so the lock of a condition is tested once only.
    return (id(lock), 0) if is_condition else (frame.f_code, frame.f_lineno)

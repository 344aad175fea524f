"""Locks of the program in a replay: each lane takes a lock where it did on the tape.

The tape says for each lock which lane took it the first time, the second time, and so on (`noted_locks`). A lane
that is not the next one waits until the lane before it has given the lock back.

A tape without locks (recorded on a machine without a compiler) leaves a guess. A lock that threads hold while they
print, ask or hand something over decides the order of these points. So a thread takes such a lock only when
its own next point on the tape is due: then no other thread has to come first. A line of the program that has
taken its lock many times without passing a point under it takes it at once from then on: the wait is slow, and
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

# The place of a wait that is for another lane, and not for a point: later than all of the tape.
_AFTER_ALL = Place("", 0, [0, 0, 0, "", "lock"])
_AFTER_ALL.rank = sys.maxsize

# How often in a row each line of the program has held a lock without passing a point, up to the limit.
_idle: dict[tuple[Any, int], int] = {}
_MOST_IDLE = 100
# The locks that each thread holds: the lock, the line that took it, and the next point at that time.
_held: dict[int, list[tuple[Any, tuple[Any, int], Any]]] = {}

# Packages whose locks are held around writes to stdout and stderr, and the files that were looked up.
_PRINTERS = frozenset({"logging", "loguru", "tqdm"})
_printers: dict[str, bool] = {}

# For which lane each thread works; None or nothing: what it takes is not counted.
_owners: dict[int, lanes.Lane | None] = {}
_named: WeakKeyDictionary[Any, LockTurns] = WeakKeyDictionary()


class LockTurns:
    """Whose turn it is to take one lock. `runs`: from which time on which lane took it."""

    def __init__(self, runs: list[tuple[int, str]]) -> None:
        self._runs = runs
        self._at = 0
        self._count = 0
        self._gates: dict[str, Gate] = {}
        # The program has changed: the tape does not say any more whose turn it is.
        self._is_lost = not runs

    def wait(self, head: Playhead, lane: str) -> None:
        """Wait until it is this lane's turn."""
        if self._is_lost or self._next() == lane:
            return
        gate = self._gates[lane] = Gate(_AFTER_ALL, is_before=True)
        # Looked at again: it may have been given back since, by a thread that saw no gate.
        if self._next() != lane:
            head.time.wait_at(gate)
        self._gates.pop(lane, None)
        # Every thread waits, and none of them is the one whose turn it is.
        self._is_lost = self._next() != lane

    def take(self) -> None:
        self._count += 1

    def give_back(self) -> None:
        gate = self._gates.pop(self._next(), None)
        if gate is not None:
            gate.open()

    def _next(self) -> str:
        """The lane that took it the next time on the tape."""
        runs, at = self._runs, self._at
        while at + 1 < len(runs) and runs[at + 1][0] <= self._count + 1:
            at += 1
        self._at = at
        return runs[at][1] if runs else ""


def know(lock: Any, name: str) -> None:
    """The program has made this lock."""
    head = order_slot.active()
    if head is not None and head.table.has_locks:
        _named[lock] = LockTurns(head.table.lock_runs(name))


def own_thread(lane: lanes.Lane | None) -> lanes.Lane | None:
    """This thread works for that lane from now on; the lane before."""
    me = _thread.get_ident()
    before = _owners.get(me)
    _owners[me] = lane
    return before


def before_acquire(lock: Any) -> None:
    """A thread of the program is about to take a lock."""
    head = order_slot.active()
    if head is None or not lanes.have_threads() or lanes.is_carried():
        return
    if head.table.has_locks:
        turns, lane = _turns(lock)
        if turns is not None and lane is not None:
            turns.wait(head, lane.name)
        elif turns is None and _is_printer(_file_of(sys._getframe(1).f_back)):
            _await_output(head)
        return
    line = _line_of_program(lock)
    if line is None:
        return
    place = head.ahead(lanes.current.get().name)
    most = _MOST_IDLE if type(line[0]) is not int else 1
    # The thread of an event loop does not wait here: its other tasks could not come to their points.
    if place is not None and _idle.get(line, 0) < most and order_slot.loop_here() is None:
        head.await_turn(place)
    _held.setdefault(_thread.get_ident(), []).append((lock, line, place))


def _file_of(frame: Any) -> str:
    """Empty where code in C takes a lock while an object is finalised: no Python function is around it."""
    return "" if frame is None else str(frame.f_code.co_filename)


def _is_printer(file: str) -> bool:
    """Return whether this file is of a library that prints under a lock of its own. Such locks are not on the tape."""
    known = _printers.get(file)
    if known is None:
        package = package_of(file) or file.rpartition("/")[0].rpartition("/")[2]
        known = _printers[file] = package in _PRINTERS
    return known


def _await_output(head: Playhead) -> None:
    """If the thread prints next: take the lock when the write is due. A thread that had the lock earlier would keep
    those from it that print first. The write would block an event loop, too, and for the same points.
    """
    place = head.ahead(lanes.current.get().name)
    if place is None or place.what[1] != points.OUTPUT:
        return
    state = order_slot.loop_here()
    first = None if state is None else state.first()
    if first is None or first.rank > place.rank:
        head.await_turn(place)


def before_restore(lock: Any) -> None:
    """A thread has waited for a condition, and takes its lock again."""
    head = order_slot.active()
    if head is not None and head.table.has_locks and not lanes.is_carried():
        turns, lane = _turns(lock)
        if turns is not None and lane is not None:
            turns.wait(head, lane.name)


def after_acquire(lock: Any) -> None:
    """A thread has taken it, for the first time if it may be taken again."""
    turns, lane = _turns(lock)
    if turns is not None and lane is not None:
        turns.take()


def after_release(lock: Any) -> None:
    """The thread has given it back."""
    turns, _ = _turns(lock)
    if turns is not None:
        turns.give_back()
        return
    # Whether it passed points meanwhile says what to do the next time.
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
    """The line of the program's own code that takes the lock, itself or as that of a condition; None: a
    library takes it. Above this are `before_acquire` and the hook of the lock.
    """
    frame = sys._getframe(2).f_back
    if frame is None:
        return None
    is_condition = frame.f_code.co_name == "__enter__" and frame.f_back is not None
    if is_condition and frame.f_back is not None:
        frame = frame.f_back
    if OWNERS[frame.f_code.co_filename] != PROGRAM:
        return None
    # A waiter on a condition passes its points there, so its lock is looked at once.
    return (id(lock), 0) if is_condition else (frame.f_code, frame.f_lineno)

"""Locks of the program in a replay. Knows nothing of recording: locks are not on the tape.

A lock that threads hold while they print, ask or hand something over decides the order of these points. So
in a replay a thread takes such a lock only when its own next point on the tape is due: then no other
thread has to come first. A line of the program that has taken its lock many times without passing a point
under it takes it at once from then on: the wait is slow, and orders nothing there.
"""

from __future__ import annotations

import _thread
import sys
from typing import Any

from playhead.recording import lanes, order_slot
from playhead.recording.where import OWNERS, PROGRAM

# How often in a row each line of the program has held a lock without passing a point, up to the limit.
_idle: dict[tuple[Any, int], int] = {}
_MOST_IDLE = 100
# The locks that each thread holds: the lock, the line that took it, and the next point at that time.
_held: dict[int, list[tuple[Any, tuple[Any, int], Any]]] = {}


def before_acquire(lock: Any) -> None:
    """A thread of the program is about to take a lock."""
    head = order_slot.active()
    if head is None or not lanes.have_threads() or lanes.is_carried():
        return
    line = _line_of_program(lock)
    if line is None:
        return
    place = head.ahead(lanes.current.get().name)
    # The thread of an event loop does not wait here: its other tasks could not come to their points.
    most = _MOST_IDLE if type(line[0]) is not int else 1
    if place is not None and _idle.get(line, 0) < most and order_slot.loop_here() is None:
        head.await_turn(place)
    _held.setdefault(_thread.get_ident(), []).append((lock, line, place))


def after_release(lock: Any) -> None:
    """The thread has given it back: whether it passed points meanwhile says what to do the next time."""
    held = _held.get(_thread.get_ident())
    if not held or held[-1][0] is not lock:
        return
    _, line, place = held.pop()
    if place is not None:
        _idle[line] = 0 if place.passed else _idle.get(line, 0) + 1


def _line_of_program(lock: Any) -> tuple[Any, int] | None:
    """The line of the program's own code that takes the lock, itself or as that of a condition; None: a
    library takes it. Above this are `before_acquire` and the hook of the lock.
    """
    frame = sys._getframe(3)
    is_condition = frame.f_code.co_name == "__enter__" and frame.f_back is not None
    if is_condition and frame.f_back is not None:
        frame = frame.f_back
    if OWNERS[frame.f_code.co_filename] != PROGRAM:
        return None
    # A waiter on a condition passes its points there, so its lock is looked at once.
    return (id(lock), 0) if is_condition else (frame.f_code, frame.f_lineno)

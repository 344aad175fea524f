"""Locks of the program in a replay. Knows nothing of recording: locks are not on the tape.

A lock that threads hold while they print, ask or hand something over decides the order of these points. So
in a replay a thread takes such a lock only when its own next point on the tape is due: then no other
thread has to come first. Whether points are passed under a lock is learnt when it is first held: until
then it is taken to be so.
"""

from __future__ import annotations

import _thread
import sys
from typing import Any
from weakref import WeakKeyDictionary

from playhead.recording import lanes, order_slot
from playhead.recording.where import OWNERS, PROGRAM

# Locks under which no point was passed when they were held, and how far their holder was then.
_cold: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()
_held: dict[int, list[tuple[Any, Any]]] = {}


def before_acquire(lock: Any) -> None:
    """A thread of the program is about to take a lock."""
    head = order_slot.active()
    if head is None or not lanes.have_threads() or not _is_program() or lanes.is_carried():
        return
    place = head.ahead(lanes.current.get().name)
    # The thread of an event loop does not wait here: its other tasks could not come to their points.
    if place is not None and not _cold.get(lock) and order_slot.loop_here() is None:
        head.await_turn(place)
    _held.setdefault(_thread.get_ident(), []).append((lock, place))


def after_release(lock: Any) -> None:
    """The thread has given it back: whether it passed points meanwhile says what to do the next time."""
    held = _held.get(_thread.get_ident())
    if not held or held[-1][0] is not lock:
        return
    _, place = held.pop()
    if place is not None:
        _cold[lock] = not place.passed


def _is_program() -> bool:
    """Whether the program's own code takes the lock, itself or as that of a condition. Above this are
    `before_acquire` and the hook of the lock.
    """
    frame = sys._getframe(3)
    if frame.f_code.co_name == "__enter__" and frame.f_back is not None:
        frame = frame.f_back
    return OWNERS[frame.f_code.co_filename] == PROGRAM

"""Keep the order in which threads return from waits for semaphores, events, barriers and conditions of `threading`.

These classes are written in Python, so a hook adds little to their cost. Locks are in C, and a hook in Python would
cost ten times as much as the lock. So these hooks leave locks alone while recording (docs/determinism.md).
"""

from __future__ import annotations

import sys

from playhead.hooks.guest import Patches, need
from playhead.host.later import Later
from playhead.recording import order_slot, points
from playhead.recording.where import OWNERS, PROGRAM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType, ModuleType
    from typing import Any

    from playhead.hooks.order import locks
else:
    locks = Later("playhead.hooks.order.locks")  # only a replay loads it

_TIMERS: list[CodeType] = []
# In the time of a replay, which stands still while a thread computes. It passes only if the program has changed.
_LONGEST_RELEASE_S = 1.0


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is threading."""
    need(module, "Semaphore", "Event", "Barrier", "Condition", "Timer")
    # A `Timer` waits on behalf of the program, in its own thread. `Timer.run` is the frame that waits there.
    _TIMERS.append(module.Timer.run.__code__)
    need(module.Semaphore, "acquire", "__enter__")
    acquire = _acquire(module.Semaphore.acquire)
    patches.replace(module.Semaphore, "acquire", lambda _: acquire)
    patches.replace(module.Semaphore, "__enter__", lambda _: acquire)
    patches.replace(module.Event, "wait", _wait_for_event)
    patches.replace(module.Barrier, "wait", _wait)
    patches.replace(module.Condition, "wait", _wait_for_condition)
    patches.replace(module.Condition, "wait_for", _wait_for_predicate)


def _is_program(frame: FrameType) -> bool:
    """Return whether the program itself waits. The standard library's own threads are not ordered: a pool that
    waited for its turn would wait for itself.
    """
    return OWNERS[frame.f_code.co_filename] == PROGRAM or frame.f_code in _TIMERS


def _acquire(original: Callable[..., bool]) -> Callable[..., bool]:
    def acquire(self: Any, blocking: bool = True, timeout: float | None = None) -> bool:
        if not _is_program(sys._getframe(1)) or not order_slot.is_kept():
            return original(self, blocking, timeout)
        place = order_slot.wait_for(points.ACQUIRED)
        if place is not None and place.what[3] == points.IN_VAIN:
            order_slot.acted()
            return False
        taken = original(self, blocking, timeout)
        if not taken and place is not None:
            # On the tape it was acquired. The thread that releases it has passed its last point, and still computes.
            taken = original(self, True, _LONGEST_RELEASE_S)
        order_slot.acted()
        order_slot.happened(points.ACQUIRED, None if taken else points.IN_VAIN)
        return taken

    return acquire


def _wait(original: Callable[..., Any]) -> Callable[..., Any]:
    def wait(self: Any, *args: Any, **named: Any) -> Any:
        if not _is_program(sys._getframe(1)) or not order_slot.is_kept():
            return original(self, *args, **named)
        try:
            return original(self, *args, **named)
        finally:
            # The awaited condition holds, or the timeout has passed: the thread learns of it now.
            order_slot.wait_for(points.WOKEN)
            order_slot.acted()
            order_slot.happened(points.WOKEN)

    return wait


def _wait_for_condition(original: Callable[..., bool]) -> Callable[..., bool]:
    def wait(self: Any, timeout: float | None = None) -> bool:
        if not _is_program(sys._getframe(1)) or not order_slot.is_kept():
            return original(self, timeout)
        has_lock = False
        try:
            is_notified = original(self, timeout)
            has_lock = True
        finally:
            _come_to_place(self, has_lock=has_lock)
            order_slot.acted()
            order_slot.happened(points.WOKEN)
        return is_notified

    return wait


def _wait_for_predicate(original: Callable[..., Any]) -> Callable[..., Any]:
    def wait_for(self: Any, predicate: Any, timeout: float | None = None) -> Any:
        if not _is_program(sys._getframe(1)) or not order_slot.is_kept():
            return original(self, predicate, timeout)
        result, has_lock, had_lock = None, False, True
        try:
            result = original(self, predicate, timeout)
            has_lock = True
        finally:
            had_lock = _come_to_place(self, has_lock=has_lock)
            order_slot.acted()
            order_slot.happened(points.WOKEN)
        if result and not had_lock:
            # Another thread may have had the lock meanwhile. In the recorded run the predicate was true here.
            result = original(self, predicate, timeout)
        return result

    return wait_for


def _come_to_place(condition: Any, *, has_lock: bool) -> bool:
    """Wait for the place at which this thread woke. Return False if it has released the lock of the condition
    meanwhile.
    """
    if not has_lock or order_slot.is_due(points.WOKEN) or locks.is_ordered(condition._lock):
        order_slot.wait_for(points.WOKEN)
        return True
    _wait_without_lock(condition)
    return False


def _wait_without_lock(condition: Any) -> None:
    """Wait for the place at which this thread woke. Until then other threads had the lock of the condition."""
    state = condition._release_save()
    try:
        order_slot.wait_for(points.WOKEN)
    finally:
        condition._acquire_restore(state)


def _wait_for_event(original: Callable[..., bool]) -> Callable[..., bool]:
    def wait(self: Any, timeout: float | None = None) -> bool:
        if not _is_program(sys._getframe(1)) or not order_slot.is_kept():
            return original(self, timeout)
        if order_slot.expects(points.WOKEN, points.IN_VAIN):
            # The timeout passed in the recorded run, so it passes here, even if the event has been set by now.
            order_slot.wait_for(points.WOKEN)
            order_slot.acted()
            return False
        is_set = False
        try:
            is_set = original(self, timeout)
        finally:
            place = order_slot.wait_for(points.WOKEN)
            order_slot.acted()
            order_slot.happened(points.WOKEN, None if is_set else points.IN_VAIN)
        # The clock of a replay moves with the points of all threads, so it may pass the timeout of a wait that
        # succeeded in the recorded run. Whatever set the event came before this place.
        return is_set or (place is not None and self.is_set())

    return wait

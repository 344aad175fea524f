"""Keep the order in which threads put and get items of a `queue.Queue`. Knows where the queue holds its mutex.

A point is noted while the mutex is held. After `get` has returned, two threads could note their points in the wrong
order. The queue of LangGraph's streams has no mutex, so threads put items under a lock of ours while recording. Its
`get` acquires a semaphore, which is a point already (`thread_waits`).
"""

from __future__ import annotations

import _thread
import os
import queue
import sys

from playhead.hooks.guest import Patches, need
from playhead.recording import lanes, order_slot, points
from playhead.recording.where import OWNERS, PROGRAM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, ModuleType
    from typing import Any

_QUEUE = queue.Queue.get.__code__.co_filename
# `QueueHandler` and `QueueListener` hand the program's log lines from thread to thread.
_LOGGING = ("logging/handlers.py", "logging\\handlers.py")
# A thread that never comes back from a put must not block the others: recording fails open.
_LONGEST_PUT_S = 1.0
_putting = _thread.allocate_lock()


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is queue."""
    need(module, "Queue", "Empty", "Full")
    for kind in (module.Queue, module.LifoQueue, module.PriorityQueue):
        need(kind, "_get", "_put")
        patches.replace(kind, "_get", lambda original: _noted(original, points.GET))
        patches.replace(kind, "_put", lambda original: _noted(original, points.PUT))
    patches.replace(module.Queue, "get", lambda original: _get(original, module.Empty))
    patches.replace(module.Queue, "put", lambda original: _put(original, module.Full))


def hook_stream(module: ModuleType, patches: Patches) -> None:
    """`module` is langgraph._internal._queue."""
    need(module, "SyncQueue")
    need(module.SyncQueue, "put")
    patches.replace(module.SyncQueue, "put", _put_to_stream)


def _put_to_stream(original: Callable[..., None]) -> Callable[..., None]:
    def put(self: Any, *args: Any, **named: Any) -> None:
        if not order_slot.is_kept():
            return original(self, *args, **named)
        if points.active() is None:
            order_slot.wait_for(points.PUT)
            try:
                return original(self, *args, **named)
            finally:
                order_slot.acted()
        lock = _putting
        is_mine = lock.acquire(timeout=_LONGEST_PUT_S)
        try:
            original(self, *args, **named)
            order_slot.happened(points.PUT)
        finally:
            if is_mine:
                lock.release()
        return None

    return put


def _start_anew() -> None:
    global _putting  # noqa: PLW0603  a forked child lacks the thread that held the lock
    _putting = _thread.allocate_lock()


os.register_at_fork(after_in_child=_start_anew)


def _noted(original: Callable[..., Any], kind: str) -> Callable[..., Any]:
    def noted(self: Any, *item: Any) -> Any:
        result = original(self, *item)
        # The frames above this one: `Queue.get`, our own wrapper, and the caller.
        if points.active() is not None and not _is_internal(sys._getframe(3)):
            order_slot.happened(kind)
        return result

    return noted


def _get(original: Callable[..., Any], empty: type[Exception]) -> Callable[..., Any]:
    def get(self: Any, block: bool = True, timeout: float | None = None) -> Any:
        if _is_internal(sys._getframe(1)):
            return original(self, block, timeout)
        _wait_for(points.GET, empty)
        try:
            return original(self, block, timeout)
        except empty:
            order_slot.happened(points.GET, points.IN_VAIN)
            raise
        finally:
            order_slot.acted()

    return get


def _put(original: Callable[..., None], full: type[Exception]) -> Callable[..., None]:
    def put(self: Any, item: Any, block: bool = True, timeout: float | None = None) -> None:
        if _is_internal(sys._getframe(1)):
            return original(self, item, block, timeout)
        _wait_for(points.PUT, full)
        try:
            original(self, item, block, timeout)
        except full:
            order_slot.happened(points.PUT, points.IN_VAIN)
            raise
        finally:
            order_slot.acted()
        return None

    return put


def _is_internal(frame: FrameType) -> bool:
    """Return whether a library uses this queue: a client for its connections, or the standard library for its work.
    Other points decide their order, and a replay does not repeat all of it.
    """
    if frame.f_code.co_filename == _QUEUE:  # `get_nowait` and `put_nowait`
        frame = frame.f_back or frame
    if frame.f_code.co_filename.endswith(_LOGGING):
        return (
            lanes.is_carried()
        )  # a replay does not carry requests, so it lacks what is logged meanwhile
    return OWNERS[frame.f_code.co_filename] != PROGRAM


def _wait_for(kind: str, in_vain: type[Exception]) -> None:
    place = order_slot.wait_for(kind)
    if place is not None and place.what[3] == points.IN_VAIN:
        order_slot.acted()
        raise in_vain

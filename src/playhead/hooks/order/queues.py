"""Keep the order in which threads put and get items of a `queue.Queue`. Knows where the queue holds its mutex.

A point is noted while the mutex is held. After `get` has returned, two threads could note their points in the wrong
order.
"""

from __future__ import annotations

import queue
import sys

from playhead.hooks.guest import Patches, need
from playhead.recording import order_slot, points
from playhead.recording.where import OWNERS, PROGRAM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, ModuleType
    from typing import Any

_QUEUE = queue.Queue.get.__code__.co_filename


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is queue."""
    need(module, "Queue", "Empty", "Full")
    for kind in (module.Queue, module.LifoQueue, module.PriorityQueue):
        need(kind, "_get", "_put")
        patches.replace(kind, "_get", lambda original: _noted(original, points.GET))
        patches.replace(kind, "_put", lambda original: _noted(original, points.PUT))
    patches.replace(module.Queue, "get", lambda original: _get(original, module.Empty))
    patches.replace(module.Queue, "put", lambda original: _put(original, module.Full))


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
    return OWNERS[frame.f_code.co_filename] != PROGRAM


def _wait_for(kind: str, in_vain: type[Exception]) -> None:
    place = order_slot.wait_for(kind)
    if place is not None and place.what[3] == points.IN_VAIN:
        order_slot.acted()
        raise in_vain

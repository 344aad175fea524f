"""Record which pipes were ready when the program called `multiprocessing.connection.wait` or `poll`.

The other processes of a run do their work again in a replay, in any order. So a program that waits for several pipes
gets the ones that were ready in the recorded run, as soon as they are ready again.
"""

from __future__ import annotations

import sys

from playhead.hooks.guest import Patches, need
from playhead.recording import order_slot, points
from playhead.recording.where import OWNERS, PROGRAM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from playhead.replay.points_table import Place


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is multiprocessing.connection."""
    need(module, "wait", "_ConnectionBase")
    need(module._ConnectionBase, "poll")
    patches.replace(module, "wait", _wait)
    patches.replace(module._ConnectionBase, "poll", _poll)


def _is_noted() -> bool:
    """Return whether the program itself waits. `worker_results` orders the pools of the standard library."""
    return OWNERS[sys._getframe(2).f_code.co_filename] == PROGRAM and order_slot.is_kept()


def _then(kind: str) -> Place | None:
    place = order_slot.wait_for(kind)
    order_slot.acted()
    return place


def _wait(original: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    def wait(object_list: Any, timeout: float | None = None) -> list[Any]:
        if not _is_noted():
            return original(object_list, timeout)
        objects = list(object_list)
        place = _then(points.PIPES)
        numbers = None if place is None else place.what[3]
        if isinstance(numbers, list) and all(
            type(number) is int and 0 <= number < len(objects) for number in numbers
        ):
            ready = [objects[number] for number in numbers]
            for one in ready:
                original([one])
            return ready
        found = original(objects, timeout)
        known = {id(one): number for number, one in enumerate(objects)}
        order_slot.happened(points.PIPES, [known[id(one)] for one in found])
        return found

    return wait


def _poll(original: Callable[..., bool]) -> Callable[..., bool]:
    def poll(self: Any, timeout: float | None = 0.0) -> bool:
        if not _is_noted():
            return original(self, timeout)
        place = _then(points.POLLED)
        if place is not None and type(place.what[3]) is bool:
            return place.what[3] and original(self, None)
        found = original(self, timeout)
        order_slot.happened(points.POLLED, bool(found))
        return found

    return poll

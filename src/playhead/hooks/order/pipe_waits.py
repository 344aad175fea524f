"""Record which pipes were ready when the program called `multiprocessing.connection.wait` or `poll`, and when it saw
that a `multiprocessing.Event` was set.

The other processes of a run do their work again in a replay, in any order. So a program that waits for several pipes
gets the ones that were ready in the recorded run, as soon as they are ready again. A program that looks at an event
again and again, as the workers of hypercorn do, sees it set after as many looks as in the recorded run.
"""

from __future__ import annotations

import sys
from weakref import WeakKeyDictionary

from playhead.hooks.guest import Patches, need
from playhead.recording import lanes, order_slot, points
from playhead.recording.where import OWNERS, PROGRAM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from playhead.replay.points_table import Place


class _Looks:
    """How often the program has looked at an event that was not set. Only the number is recorded, when the event is
    set: a program may look a million times.
    """

    def __init__(self) -> None:
        self.in_vain = 0
        # In a replay: the point at which the event is set.
        self.place: Place | None = None


# Not an attribute of the event, which is pickled for a process that is spawned.
_looks: WeakKeyDictionary[Any, _Looks] = WeakKeyDictionary()


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is multiprocessing.connection."""
    need(module, "wait", "_ConnectionBase")
    need(module._ConnectionBase, "poll")
    patches.replace(module, "wait", _wait)
    patches.replace(module._ConnectionBase, "poll", _poll)


def hook_events(module: ModuleType, patches: Patches) -> None:
    """`module` is multiprocessing.synchronize."""
    need(module, "Event")
    need(module.Event, "is_set", "wait")
    wait = module.Event.wait
    patches.replace(module.Event, "is_set", lambda original: _is_set(original, wait))


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


def _is_set(
    original: Callable[[Any], bool], wait_until_set: Callable[[Any], bool]
) -> Callable[[Any], bool]:
    def is_set(self: Any) -> bool:
        if not _is_noted():
            return original(self)
        looks = _looks.setdefault(self, _Looks())
        if (head := order_slot.active()) is not None:
            if looks.place is None:
                looks.place = head.take(lanes.current.get(), points.LOOKED)
            place = looks.place
            if place is None or type(place.what[3]) is not int:
                return original(self)
            if looks.in_vain < place.what[3]:
                looks.in_vain += 1
                return False
            del _looks[self]
            head.arrive(place, order_slot.loop_here())
            # In C, so that the other processes of the replay see that this one is idle: one of them sets the event.
            wait_until_set(self)
            return True
        found = original(self)
        if found:
            del _looks[self]
            order_slot.happened(points.LOOKED, looks.in_vain)
        else:
            looks.in_vain += 1
        return found

    return is_set

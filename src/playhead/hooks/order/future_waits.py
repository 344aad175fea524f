"""Let the program find as many jobs done in a replay as in the recorded run, where it waits for jobs or gives them
callbacks.

Jobs end while the program computes between two waits. In a replay time stands still meanwhile, so the next wait would
find fewer of them done than on the tape. A callback that is given to a job runs at once if the job is done, in the
thread and the lane that gives it. Otherwise it runs in those of the job, and what it starts has other names.

Knows `wait` and `add_done_callback`; the end of a job is a separate point (`lane_hooks`).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from playhead.hooks.guest import Patches, holders, need
from playhead.hooks.order.lane_hooks import endings
from playhead.recording import lanes, order_slot, points
from playhead.recording.where import OWNERS, PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

# The program begins to ask `as_completed` for results; it has all of them, or leaves it; in vain if the timeout has
# passed.
_BEGUN = f"{points.AWAITED}:begun"
_COMPLETED = f"{points.AWAITED}:completed"
# A job that has passed its point has its result at once. This bounds the wait for a program that has changed.
_LONGEST_END_S = 1.0


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is concurrent.futures._base."""
    need(module, "wait", "ALL_COMPLETED", "Future")
    need(module.Future, "add_done_callback")
    original = module.wait
    made = _wait(original, module.ALL_COMPLETED)
    # Also replaces copies: `from concurrent.futures import wait`.
    for holder in holders("wait", original):
        patches.replace(holder, "wait", lambda _: made)
    patches.replace(module.Future, "add_done_callback", lambda add: _add_callback(add, original))
    completed = module.as_completed
    ordered = _as_completed(completed)
    for holder in holders("as_completed", completed):
        patches.replace(holder, "as_completed", lambda _: ordered)


def _wait(original: Callable[..., Any], everything: str) -> Callable[..., Any]:
    def wait(fs: Any, timeout: float | None = None, return_when: str = everything) -> Any:
        is_program = OWNERS[sys._getframe(1).f_code.co_filename] == PROGRAM
        # The thread of an event loop must not wait for a place: its tasks could not reach their own places.
        if not is_program or not order_slot.is_kept() or order_slot.loop_here() is not None:
            return original(fs, timeout, return_when)
        # Jobs that ended before this place have passed theirs, so `original` finds them done.
        place = order_slot.wait_for(points.AWAITED)
        order_slot.acted()
        if place is not None and place.what[3] == points.IN_VAIN:
            timeout = 0
        result = original(fs, timeout, return_when)
        is_late = bool(result.not_done) and (not result.done or return_when == everything)
        order_slot.happened(points.AWAITED, points.IN_VAIN if is_late else None)
        return result

    return wait


def _as_completed(original: Callable[..., Any]) -> Callable[..., Any]:
    def as_completed(fs: Any, timeout: float | None = None) -> Any:
        is_program = OWNERS[sys._getframe(1).f_code.co_filename] == PROGRAM
        # The thread of an event loop must not wait for a place.
        if not is_program or not order_slot.is_kept() or points.turn()[0]:
            return original(fs, timeout)
        return _until_taped(original, fs, timeout)

    return as_completed


def _until_taped(original: Callable[..., Any], fs: Any, timeout: float | None) -> Iterator[Any]:
    """Yield futures as they complete. In a replay the timeout passes if, and only if, it passed in the recorded run,
    and at its place: the clock of a replay stands still while the program computes, so it does not tell.
    """
    # Jobs that are done by now come first, in the order in which they were submitted.
    order_slot.wait_for(_BEGUN)
    order_slot.acted()
    order_slot.happened(_BEGUN)
    if timeout is None:
        yield from original(fs)
        return
    head, lane = order_slot.active(), lanes.current.get()
    number, detail = lane.count(_COMPLETED), None
    place = None if head is None else head.table.lane(lane.name, _COMPLETED, number)
    left: float | None = timeout
    if head is not None and place is not None:
        left = None
        if place.what[3] == points.IN_VAIN:
            left = max(0, place.ns - head.time.now_ns()) / 1e9
            lane.forget_reached()  # the timeout begins now, and not at the last call of this lane
    try:
        yield from original(fs, left)
    except TimeoutError:
        detail = points.IN_VAIN
        raise
    finally:
        if head is None:
            points.note(lane, _COMPLETED, detail, number)
        elif place is not None:
            head.pass_by(place)


def _add_callback(
    original: Callable[[Any, Any], None], wait: Callable[..., Any]
) -> Callable[[Any, Any], None]:
    def add_done_callback(self: Any, fn: Any) -> None:
        if (
            lanes.OF_JOB not in self.__dict__
            or OWNERS[sys._getframe(1).f_code.co_filename] != PROGRAM
            or not order_slot.is_kept()
        ):
            return original(self, fn)
        if points.active() is None:
            _come_to_callback(self, wait)
            return original(self, fn)
        # A job does not end between the point and the moment at which its future has the callback.
        endings.hold()
        try:
            is_done = self.done()
            # Event loops have points of their own for the ends of jobs.
            if not points.turn()[0]:
                order_slot.happened(points.CALLBACK, points.DONE if is_done else None)
            if not is_done:
                return original(self, fn)
        finally:
            endings.end()
        return original(self, fn)  # calls `fn`

    return add_done_callback


def _come_to_callback(job: Any, wait: Callable[..., Any]) -> None:
    """Wait in a replay until the job is done, if it was done on the tape. If it was not, its end has a later place,
    where it waits for this one to pass. So this thread does not wait for its own place.
    """
    head = order_slot.active()
    place = None if head is None else head.take(lanes.current.get(), points.CALLBACK)
    if head is None or place is None:
        return
    if place.what[3] == points.DONE and order_slot.loop_here() is None and not job.done():
        wait((job,), _LONGEST_END_S)
    head.pass_by(place)

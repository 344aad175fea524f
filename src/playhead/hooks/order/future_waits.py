"""Let `concurrent.futures.wait` find as many jobs done in a replay as in the recorded run.

Jobs end while the program computes between two waits. In a replay time stands still meanwhile, so the next wait would
find fewer of them done than on the tape. Knows `wait`; the end of a job is a separate point (`lane_hooks`).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from playhead.hooks.guest import Patches, holders, need
from playhead.recording import order_slot, points
from playhead.recording.where import OWNERS, PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is concurrent.futures._base."""
    need(module, "wait", "ALL_COMPLETED")
    original = module.wait
    made = _wait(original, module.ALL_COMPLETED)
    # Also replaces copies: `from concurrent.futures import wait`.
    for holder in holders("wait", original):
        patches.replace(holder, "wait", lambda _: made)


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

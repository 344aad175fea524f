"""Record when `time.sleep` returns in a thread. In a replay, `ambient.waiting_threads` does the waiting."""

from __future__ import annotations

import sys

from playhead.hooks.guest import Patches, need
from playhead.hooks.replacements import Builtin, replace_copies
from playhead.recording import lanes, order_slot, points

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is time."""
    need(module, "sleep")
    if points.active() is None:
        return  # a replay waits in `ambient.waiting_threads`
    original = module.sleep
    patches.replace(module, "sleep", lambda real: Builtin(_sleep(real)))
    replace_copies(patches, {id(original): module.sleep})


def _sleep(original: Callable[[float], None]) -> Callable[[float], None]:
    def sleep(seconds: float, /) -> None:
        original(seconds)
        # `sleep(0)` waits for nothing: a program may call it in a loop until another thread has done something.
        if points.active() is None or not seconds or lanes.is_carried():
            return
        # `Popen.wait(timeout)` sleeps between two polls of its child; in a replay it waits for the child instead.
        caller = sys._getframe(2).f_globals.get("__name__")  # frames 0 and 1: this hook, `Builtin`
        if caller != "subprocess":
            order_slot.happened(points.SLEPT)

    return sleep

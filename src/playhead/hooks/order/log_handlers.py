"""`logging`: the order in which threads log to stdout and stderr.

A handler holds a lock of its own while it writes. In a replay a thread that holds it and waits for its place in the
order of the output would keep all others from theirs. So the thread waits for its place before it takes the lock.

Knows `logging.Handler`; the place itself is passed where the stream is written to (`outputs`).
"""

from __future__ import annotations

import sys

from playhead.hooks.guest import Patches, need
from playhead.recording import lanes, order_slot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is logging."""
    need(module, "Handler")
    need(module.Handler, "handle", "acquire")
    patches.replace(module.Handler, "handle", _handle)


def _handle(original: Callable[..., Any]) -> Callable[..., Any]:
    def handle(self: Any, record: Any) -> Any:
        if getattr(self, "stream", None) in (sys.stdout, sys.stderr):
            _await_output()
        return original(self, record)

    return handle


def _await_output() -> None:
    head = order_slot.active()
    # The thread of an event loop does not wait: its other tasks could not come to their points.
    if head is None or not lanes.have_threads() or lanes.is_carried() or order_slot.loop_here():
        return
    place = head.ahead(lanes.current.get().name)
    if place is not None:
        head.await_turn(place)

"""Move callbacks among the ready callbacks of an asyncio event loop. Knows `BaseEventLoop._ready` and its handles; does
not know which callback belongs where (`replay/next_turn`).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from playhead.host import loop_frames
from playhead.recording import lanes, order_slot

# Callbacks of ours, which have other names while recording.
_OURS = ("_noted", "_passing", "settle", "taken")


def place_last(loop: Any, index: int) -> None:
    """Move the last of the ready callbacks to position `index`."""
    ready = loop._ready
    if index < len(ready):
        ready.insert(index, ready.pop())


def arrange(loop: Any, future: Any, index: int, behind: list[str] | None, floor: int) -> int:
    """Move the ready callback of the task that waited for this future to position `index` at the latest, and not before
    position `floor`. `behind` names the callbacks that ran behind it in the recorded run: it comes before these and
    after all others. Return its position.
    """
    ready = loop._ready
    at = next((n for n, one in enumerate(ready) if one._args and one._args[0] is future), None)
    if at is None:
        return floor - 1
    left, first, others = Counter(behind), len(ready), []
    # From the end: if several callbacks have the same name, the last ones ran behind the task.
    for n in range(len(ready) - 1, -1, -1):
        name = "" if n == at else loop_frames.name_of(ready[n], lanes.current)
        if left[name]:
            left[name] -= 1
            first = n
        elif n > at and _is_comparable(ready[n], name):
            others.append(n)
    to = max(floor, min(at, max(0, index), first))
    if behind is not None and len(behind) < loop_frames.MOST_NAMED:
        # The removal below moves the callbacks between to the front by one.
        to = next((n for n in others if n < first), to)
    handle = ready[at]
    del ready[at]
    ready.insert(to, handle)
    return to


def _is_comparable(handle: Any, name: str) -> bool:
    """Return whether the recorded run had this callback in the same turn, as far as one can know."""
    if not name or name.rpartition(":")[2] in _OURS or handle._cancelled:
        return False
    return handle._context.get(order_slot.between_turns) is None

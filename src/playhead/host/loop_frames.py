"""Tell where asyncio's event loop is within its current turn. Knows `BaseEventLoop._run_once` (CPython 3.10 to 3.14).

asyncio has no other way to ask, and a count of our own would cost a hook in every callback.
"""

from __future__ import annotations

import sys
from itertools import islice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextvars import ContextVar
    from typing import Any

_RUN_ONCE = "_run_once"
# How many callbacks are looked at, and how many of them are named: the nearest ones decide.
_MOST_SEEN, MOST_NAMED = 24, 6
# The callbacks of a task, in C and in Python.
_STEP = "TaskStepMethWrapper"
_TASK_METHODS = frozenset(("Task.task_wakeup", "Task.__wakeup", "Task.__step"))


class TurnPlace:
    """The position of the running callback in its turn."""

    __slots__ = ("_left", "_ready", "index", "queued")

    def __init__(self, ready: Any, index: int, left: int) -> None:
        self._ready = ready
        self._left = left
        # How many callbacks the loop has already run in this turn, and how many it has scheduled for the next one.
        self.index = index
        self.queued = len(ready) - left

    def behind(self, lane: ContextVar[Any], tool: ContextVar[Any]) -> list[str]:
        """Return the names of the callbacks that the loop will run after the current one in this turn, nearest first.
        Leaves out callbacks inside a `tool`, which a replay does not run.
        """
        if not self._left:
            return []
        names = []
        for handle in islice(self._ready, min(self._left, _MOST_SEEN)):
            if not handle._cancelled and handle._context.get(tool) is None:  # noqa: SLF001  as above
                names.append(name_of(handle, lane))
                if len(names) == MOST_NAMED:
                    break
        return names


def place_in_turn() -> TurnPlace | None:
    """Return the position of the callback that the event loop of this thread runs now; None if the loop is not
    asyncio's.

    Two tasks that wait for different things are ready in the same turn, and the order in which they run decides what
    the program prints.
    """
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == _RUN_ONCE:
            known = frame.f_locals
            index, count = known.get("i"), known.get("ntodo")
            if type(index) is not int or type(count) is not int:
                return None
            return TurnPlace(known["self"]._ready, index, count - index - 1)  # noqa: SLF001  as above
        frame = frame.f_back
    return None


def name_of(handle: Any, lane: ContextVar[Any]) -> str:
    """Return the name of a callback that is ready: its lane, and for anything but a task the function. A task has a
    lane of its own, and is ready once at most.
    """
    callback, here = handle._callback, handle._context.get(lane)  # noqa: SLF001  as above
    name = "main" if here is None else here.name
    if type(callback).__name__ == _STEP:
        return str(name)
    function = getattr(callback, "__qualname__", None) or type(callback).__qualname__
    return str(name) if function in _TASK_METHODS else f"{name}:{function}"

"""Make taped answers take as long as they took in the recorded run. Knows the slot for the time of a replay, which
`replay` fills.

An answer that took nine seconds takes nine seconds of virtual time, which cost no real time, or nine real seconds with
`--pace`. So the first of two concurrent calls to finish is the same one as in the recorded run, a ticker ticks as
often, and a timeout that did not fire does not fire.
"""

from __future__ import annotations

import sys

from playhead.host.lean import Protocol
from playhead.recording import lanes, points

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Time(Protocol):
    """The operations of a replay's time. `rests` says whether taped answers take their time."""

    rests: bool

    def rest(self, ns: int) -> None: ...

    async def rest_async(self, ns: int) -> bool:
        """Return True if the tape knows the place of this moment, and the replay has reached it; otherwise a sleep is
        needed.
        """

    async def abandon(self, ns: int) -> bool: ...

    async def take_async(self, lane: lanes.Lane, kind: str) -> None: ...

    def go_live(self) -> None: ...


_INSIDE = ("tool", "state")

_time: Time | None = None


def begin(time: Time) -> None:
    global _time  # noqa: PLW0603  one slot a process
    _time = time


def end(time: Time) -> None:
    global _time  # noqa: PLW0603  one slot a process
    if _time is time:
        _time = None


def rest(ns: int) -> None:
    """Wait this long before an answer, or its next piece, is handed out."""
    if _time is not None and (ns > 0 or type(ns) is not int):
        _time.rest(ns)


def seconds(ns: int) -> float:
    """Return how many seconds a timer of the program's own event loop must run for this wait."""
    return ns / 1e9 if _time is not None and ns > 0 else 0.0


async def rest_async(ns: int) -> None:
    """Wait like `rest`, while other tasks run."""
    if _time is None or not _time.rests or (type(ns) is not int and await _time.rest_async(ns)):
        return
    if ns > 0:
        await sleep(ns / 1e9)


def rest_to_end(ns: int) -> None:
    """Wait for the end of an answer when the program requests more after the last piece, if the tape knows the place of
    the end. Otherwise the end comes with the last piece.
    """
    if type(ns) is not int:
        rest(ns)


async def rest_to_end_async(ns: int) -> None:
    if type(ns) is not int:
        await rest_async(ns)


async def close_async() -> None:
    """Note or wait for the moment when a client has closed an answer. Closing may take several turns of the event loop,
    and the program learns of the end only then.
    """
    lane = lanes.current.get()
    if points.active() is not None:
        points.note(lane, points.CLOSED)
    elif _time is not None and _time.rests:
        await _time.take_async(lane, points.CLOSED)


async def abandon(ns: int) -> bool:
    """Wait until the program leaves a call that it left at this moment of the tape. Return False if the tape does not
    know the place.
    """
    return _time is not None and type(ns) is not int and await _time.abandon(ns)


def go_live(boundary: str) -> None:
    """Make time real, because a call is made for real. Calls that stay inside the program do not make its time real."""
    if _time is not None and boundary not in _INSIDE:
        _time.go_live()


async def sleep(seconds: float) -> None:
    """Sleep in whichever event loop runs this task."""
    trio: Any = sys.modules.get("trio")
    if trio is not None and _runs_trio(trio):
        await trio.sleep(seconds)
    else:
        await sys.modules["asyncio"].sleep(seconds)


def _runs_trio(trio: Any) -> bool:
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        return False
    return True

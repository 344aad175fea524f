"""Measure how long a program took to start: the time before its first call. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from playhead import events
from playhead.events import Event

# A program that only prints has no first call; further events are not read.
_FIRST_EVENTS = 10_000
_AGENT_STARTS = frozenset({events.CALL, events.TURN_START})


def start_up_ns(tape: Iterable[Event]) -> int | None:
    """Return the time from the first event of a run to the start of its agent. None: not among its first events."""
    first: int | None = None
    for number, event in enumerate(tape):
        if first is None:
            first = event.mono
        if starts_agent(event):
            return max(0, event.mono - first)
        if number > _FIRST_EVENTS:
            break
    return None


def starts_agent(event: Event) -> bool:
    """Return whether this is a call, a turn, output or an event of the program's own. Calls of a library while it
    is loaded are none of these.
    """
    if not event.ours:
        return True
    if event.kind == events.OUTPUT:
        # Warnings on stderr are common while libraries are imported.
        return isinstance(event.data, dict) and event.data.get("stream") == "stdout"
    is_library = isinstance(event.data, dict) and events.BY_LIBRARY in event.data
    return event.kind in _AGENT_STARTS and not is_library

"""What a replay's tape leaves to the tape it was made from. Knows where that one lies; not what it says.

A call that was answered exactly as then is on the replay's tape without its request and answer: both are
on the original, word for word.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from itertools import islice
from typing import Any

from playhead import events
from playhead.errors import PlayheadError
from playhead.event import brought_along
from playhead.events import Event
from playhead.tape.reader import Tape


@dataclasses.dataclass(slots=True)
class Loan:
    """One call of the original: its event, its outcome, its pieces."""

    call: Event | None = None
    outcome: Event | None = None
    pieces: list[Event] = dataclasses.field(default_factory=list)


# A replay that answers exactly leaves fewer events than the run it was made from.
_AHEAD = 8


def borrow(
    tape: Tape, quiet: Iterable[str], original: Tape | None = None, first: int | None = None
) -> dict[str, Loan]:
    """The original's events for these refs; empty where the original is gone. `first`: only so many of
    the replay are told, and what they borrow is looked for in the original's beginning.
    """
    wanted = {ref: Loan() for ref in quiet}
    of = tape.manifest.replay_of
    if not wanted or not of:
        return {}
    if original is None:
        if not (tape.run.parent / of).is_dir():
            return {}
        original = Tape(tape.run.parent / of)
    try:
        for event in islice(original.events(), None if first is None else first * _AHEAD):
            if event.kind == events.CALL and event.ref in wanted:
                wanted[event.ref].call = original.whole(event)
            elif event.kind in (events.CHUNK, events.OUTCOME) and isinstance(event.data, dict):
                loan = wanted.get(event.absolute(event.data.get("call")) or "")
                if loan is not None and event.kind == events.CHUNK:
                    loan.pieces.append(original.whole(event))
                elif loan is not None:
                    loan.outcome = original.whole(event)
                    loan.pieces += brought_along(loan.outcome)
    except PlayheadError:
        return {}  # the replay is told as far as it tells itself
    return wanted


def quiet_ref(data: Any) -> str | None:
    """The original's call that this one was, if its words were left there."""
    match = data.get("match") if isinstance(data, dict) else None
    if not isinstance(match, dict) or not match.get("quiet"):
        return None
    return str(match.get("of"))

"""Which taped conversation a client means that has just begun to speak. Knows the matcher; no sockets.

Handshakes look all the same, and those of agents that work side by side come in any order. What tells
their conversations apart is what is said first.
"""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

from playhead.hooks.websocket.conversation import alike
from playhead.recording.deck import Taped
from playhead.replay.matching.taped import TapedCall, answer_of
from playhead.replay.modes.taped_mode import ReplayMode

# The conversations that somebody has taken up already.
_taken: WeakKeyDictionary[ReplayMode, set[int]] = WeakKeyDictionary()


def begins_with_the_agent(taped: Taped) -> bool:
    return bool(taped.pieces) and taped.pieces[0].stream.startswith("sent")


def meant(mode: ReplayMode, taped: Taped, message: bytes) -> Taped:
    """The conversation that begins with `message`; `taped`, the next in order, where none does."""
    number = taped.match.get("number")
    if not isinstance(number, int):
        return taped
    taken = _taken.setdefault(mode, set())
    for call in _open(mode, number, taken):
        answer = taped if call.number == number else answer_of(mode.recording.tape, call, match={})
        if begins_with_the_agent(answer) and alike(answer.pieces[0].data, message):
            taken.add(call.number)
            return answer
    taken.add(number)
    return taped


def _open(mode: ReplayMode, number: int, taken: set[int]) -> Iterator[TapedCall]:
    """The next in order first, then all others of its name that nobody has taken up."""
    own = mode.matcher.calls[number - 1]
    others = (
        one
        for one in mode.matcher.calls
        if one is not own and (one.boundary, one.name) == (own.boundary, own.name)
    )
    return (one for one in (own, *others) if one.number not in taken)

"""Requests that differ from an earlier one in their body alone: spelled as JSON without another look.

A client says the same with every request: method, address, a dozen headers. What the tape says of that
is made once, the long way, and kept with two holes in it: for the body, and for its length. Knows how an
event is put together from that; not what is said of a request (`exchange.describe`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from playhead.recording.calls import Call
from playhead.recording.holes import HOLE, around
from playhead.recording.payloads import LONGEST_TEXT
from playhead.recording.recorder import Recorder

Key = tuple[Any, ...]
# What a body makes of its request: an API and a model.
Ask = Callable[[bytes | None], Any]

_MOST = 500


class Spelled(NamedTuple):
    """A call, and what its event says around its body."""

    call: Call
    before: bytes
    between: bytes
    after: bytes


class Known:
    """All requests with one head. `asks` where it is for the body to say what they are."""

    __slots__ = ("asks", "spelled")

    def __init__(self, asks: Ask | None) -> None:
        self.asks = asks
        # None: one that has to go the long way.
        self.spelled: dict[Any, Spelled | None] = {}


def key_of(
    library: str, method: str, url: str, headers: Sequence[tuple[Any, Any]], body: object
) -> Key | None:
    """What requests have in common that differ in their body alone; None: they never will."""
    if type(body) is not bytes or not body:
        # What is streamed, or is not there, is equal to itself alone.
        return (library, method, url, body or None, *headers)
    if not headers or len(body) > LONGEST_TEXT:
        return None  # nor is what is said in all of a long conversation asked for twice
    if type(headers[0][0]) is bytes:
        length: tuple[Any, Any] = (b"Content-Length", b"%d" % len(body))
    else:
        length = ("Content-Length", str(len(body)))
    pairs = list(headers)
    try:
        at = pairs.index(length)
    except ValueError:
        return None
    pairs[at] = ("", at)
    return (library, method, url, *pairs)


def spell(recorder: Recorder, key: Key, body: object) -> tuple[Call, bytes] | None:
    """A request of that key, and its event; None: it goes the long way."""
    known: Known | None = recorder.spelled.get(key)
    if known is None:
        return None
    raw = body if type(body) is bytes else None
    spelled = known.spelled.get(None if known.asks is None else known.asks(raw))
    if spelled is None:
        return None
    call, before, between, after = spelled
    if not raw:
        return call, before
    text = recorder.spell_text(raw)
    if text is None:
        return None
    return call, b'%b%b%b"%d"%b' % (before, text, between, len(raw), after)


def learn(
    recorder: Recorder, key: Key, call: Call, body: object, asks: Callable[[], Ask | None]
) -> None:
    """A request that went the long way. From its second time on it is known: many come only once."""
    known: Known | None = recorder.spelled.get(key)
    if known is None:
        recorder.keep_spelled(key, Known(asks()))
        return
    raw = body if type(body) is bytes else None
    asked = None if known.asks is None else known.asks(raw)
    if asked not in known.spelled and len(known.spelled) < _MOST:
        known.spelled[asked] = _spelled(recorder, call, with_body=bool(raw))


def _spelled(recorder: Recorder, call: Call, *, with_body: bool) -> Spelled | None:
    data = call.told()
    if with_body:
        data["request"] = {**data["request"], "body": {"text": HOLE}}
        data["headers"] = [
            [name, HOLE if name.lower() == "content-length" else value]
            for name, value in data["headers"]
        ]
    pieces = around(recorder, data, 2 if with_body else 0)
    if pieces is None:
        return None
    short = Call(boundary=call.boundary, name=call.name, facts=call.facts)
    return Spelled(short, *pieces) if with_body else Spelled(short, pieces[0], b"", b"")

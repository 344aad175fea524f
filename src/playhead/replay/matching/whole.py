"""A taped answer that came to its end, in its plainest form. Knows the events of a call; not matching."""

from __future__ import annotations

from typing import Any, NamedTuple

from playhead.recording.chunks import as_bytes
from playhead.replay.matching.taped import TapedCall

# What follows such a head is another protocol.
_SWITCHING = 101


class Whole(NamedTuple):
    """Status and headers, then the body: each piece with the moment at which it came."""

    call: TapedCall
    head: dict[str, Any]
    pieces: list[tuple[bytes, int]]
    # When the answer began: its head, if the order of the tape is kept; else its first piece, or its end.
    first_ns: int
    # When it had come to its end.
    end_ns: int


def whole_of(call: TapedCall) -> Whole | None:
    """None: it has none, or there is more to be said of it (it broke off, it is large, it is a talk)."""
    outcome = call.outcome
    if outcome is None or call.spilled or outcome.data.get("how") != "returned":
        return None
    streams = outcome.data.get("streams", ())
    if call.chunks:
        streams = [*(event.data for event in call.chunks), *streams]
    head: Any = None
    head_ns = 0
    pieces: list[tuple[bytes, int]] = []
    for data in streams:
        stream = data.get("stream")
        if stream == "body":
            _cut(call, data, pieces)
        elif stream == "head":
            head = data.get("value")
            head_ns = (data.get("at_ns") or [0])[0]
        else:
            return None
    if type(head) is not dict or head.get("status") == _SWITCHING:
        return None
    took_ns = int(outcome.data.get("took_ns") or 0)
    if call.table is not None:
        return Whole(call, head, pieces, call.moment(int(head_ns)), call.moment(took_ns))
    return Whole(call, head, pieces, pieces[0][1] if pieces else took_ns, took_ns)


def _cut(call: TapedCall, data: dict[str, Any], pieces: list[tuple[bytes, int]]) -> None:
    """Where they were cut then."""
    raw = as_bytes(data)
    sizes, times = data.get("sizes"), data.get("at_ns") or [0]
    if sizes == [len(raw)] or not isinstance(sizes, list) or sum(sizes) != len(raw):
        pieces.append((raw, call.moment(int(times[0]))))
        return
    at = 0
    for index, size in enumerate(sizes):
        when = call.moment(int(times[min(index, len(times) - 1)]))
        pieces.append((raw[at : at + size], when))
        at += size

"""Split a call's streams into pieces as they were received. Knows chunk events; does not know their contents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from playhead.events import Event
from playhead.recording.chunks import as_bytes
from playhead.story.shape import StreamPiece


def stream_of(heard: Iterable[tuple[Event, int]]) -> tuple[Any, tuple[StreamPiece, ...]]:
    """Return the head (status and headers) and the pieces of the streams, from events with their places."""
    head: Any = None
    pieces: list[StreamPiece] = []
    for event, place in heard:
        data = event.data if isinstance(event.data, dict) else {}
        stream = str(data.get("stream", ""))
        if stream == "head":
            head = data.get("value")
        else:
            sizes, times = data.get("sizes"), data.get("at_ns")
            pieces.extend(cut(stream, _bytes(data), sizes, times, place=place))
    return head, tuple(pieces)


def _bytes(data: dict[str, Any]) -> bytes:
    try:
        return as_bytes(data)
    except (TypeError, ValueError):  # no base64: an edited tape, or one whose payload is gone
        return b""


def cut(stream: str, raw: bytes, sizes: Any, times: Any, *, place: int = 0) -> list[StreamPiece]:
    """Split the data of one event into its pieces.

    Sizes that do not add up (a level below full, an edited tape) give one piece: the bytes matter more.
    """
    times = times if isinstance(times, list) and times else [0]
    if not isinstance(sizes, list) or sum(one for one in sizes if isinstance(one, int)) != len(raw):
        return [StreamPiece(stream=stream, data=raw, at_ns=whole_number(times[0]), place=place)]
    pieces = []
    at = 0
    for index, size in enumerate(sizes):
        when = whole_number(times[min(index, len(times) - 1)])
        pieces.append(StreamPiece(stream=stream, data=raw[at : at + size], at_ns=when, place=place))
        at += size
    return pieces


def whole_number(value: Any) -> int:
    return value if type(value) is int else 0

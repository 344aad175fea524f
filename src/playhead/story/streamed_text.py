"""Find the text that each piece of a streamed answer added, with its time. Pure.

The providers know which events carry text; whole answers are decoded by `playhead.llm`. An answer that
cannot be followed piece by piece (a compression other than gzip, binary frames) is one text at its end.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from playhead.llm import LlmExchange
from playhead.llm.body_frames import SseParser, looks_like_sse
from playhead.llm.providers import provider_of
from playhead.story.shape import CallItem, StreamPiece


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPiece:
    """Text of a model. `at_ns` counts from the call; `place` is the position of its event on the tape."""

    at_ns: int
    place: int
    text: str
    is_thought: bool = False


def text_pieces(call: CallItem) -> list[TextPiece]:
    """Return the text of all answers to this call, in order."""
    if not call.llm:
        return []
    received = [piece for piece in call.pieces if piece.stream in ("body", "received")]
    if not received:
        return []
    followed = list(_followed(call, received))
    whole = [one for exchange in call.llm for one in _whole(exchange, received[-1])]
    # An event that the provider does not understand would drop text: then the whole answer is better.
    if _length(followed) < _length(whole):
        return whole
    return followed


def _length(pieces: list[TextPiece]) -> int:
    return sum(len(one.text) for one in pieces if not one.is_thought)


def _whole(exchange: LlmExchange, last: StreamPiece) -> Iterator[TextPiece]:
    response = exchange.response
    if response is None:
        return
    if response.thinking:
        thought = response.thinking
        yield TextPiece(at_ns=last.at_ns, place=last.place, text=thought, is_thought=True)
    if response.text:
        yield TextPiece(at_ns=last.at_ns, place=last.place, text=response.text)


def _followed(call: CallItem, received: list[StreamPiece]) -> Iterator[TextPiece]:
    provider = provider_of(call.api)
    if provider is None:
        return
    for piece, message in _messages(call, received):
        for text, is_thought in provider.streamed_text(message):
            if text:
                yield TextPiece(
                    at_ns=piece.at_ns, place=piece.place, text=text, is_thought=is_thought
                )


def _messages(
    call: CallItem, received: list[StreamPiece]
) -> Iterator[tuple[StreamPiece, dict[str, Any]]]:
    """Yield the JSON objects of the stream, each with the piece that completed it."""
    if received[0].stream == "received":
        for piece in received:
            yield from ((piece, found) for found in _object(piece.data))
        return
    plain = _plain(call.head)
    if plain is None:
        return
    parser = SseParser()
    begun = False
    for piece in received:
        raw = plain(piece.data)
        if not begun and raw:
            begun = True
            if not looks_like_sse(raw):
                return
        for event in parser.feed(raw):
            yield from ((piece, found) for found in _object(event.data.encode()))


def _object(raw: bytes) -> Iterator[dict[str, Any]]:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return
    if isinstance(found, dict):
        yield found


def _plain(head: Any) -> Callable[[bytes], bytes] | None:
    """Return a function that decompresses the answer piece by piece; None: that is not possible."""
    headers = head.get("headers") if isinstance(head, dict) else None
    pairs = [one for one in headers or () if isinstance(one, list) and len(one) == 2]
    coding = {str(name).lower(): str(value).lower() for name, value in pairs}
    used = coding.get("content-encoding", "identity")
    if used == "identity":
        return lambda raw: raw
    if used not in ("gzip", "x-gzip", "deflate"):
        return None
    undo = zlib.decompressobj(wbits=47)  # gzip or zlib, recognised by the first bytes

    def inflate(raw: bytes) -> bytes:
        try:
            return undo.decompress(raw)
        except zlib.error:
            return b""

    return inflate

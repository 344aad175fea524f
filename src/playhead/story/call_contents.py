"""The contents of a call: its streams as received pieces, the decoded LLM exchanges, and the text of each piece. Pure.

Knows chunk events and `playhead.llm`; does not know prices. The providers know which stream events carry text. An
answer that cannot be followed piece by piece (a compression other than gzip, binary frames) is one text at its end.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from playhead import llm as wire
from playhead.events import Event
from playhead.llm import LlmExchange
from playhead.llm.body_frames import SseParser, looks_like_sse
from playhead.llm.providers import provider_of
from playhead.recording.chunks import as_bytes
from playhead.story.shape import CallItem, Failure, StreamPiece


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
    except (TypeError, ValueError):  # not base64: an edited tape, or one whose payload is missing
        return b""


def cut(stream: str, raw: bytes, sizes: Any, times: Any, *, place: int = 0) -> list[StreamPiece]:
    """Split the data of one event into its pieces.

    Sizes that do not add up (a level below full, an edited tape) give one piece: the bytes matter more.
    """
    times = times if isinstance(times, list) and times else [0]
    are_sizes = isinstance(sizes, list) and all(type(one) is int and one >= 0 for one in sizes)
    if not are_sizes or sum(sizes) != len(raw):
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


def exchanges_of(
    api: str, asked: dict[str, Any], head: Any, pieces: Iterable[StreamPiece]
) -> tuple[LlmExchange, ...]:
    """Return one exchange for a request and its response; on a WebSocket, one for each request."""
    request = asked.get("request")
    request = request if isinstance(request, dict) else {}
    heard = list(pieces)
    if any(piece.stream == "received" for piece in heard):
        return wire.decode_websocket(api, [(one.stream, one.data) for one in heard])
    body = request.get("body")
    sent = (
        as_bytes(body)
        if isinstance(body, dict)
        else b"".join(p.data for p in heard if p.stream == "sent")
    )
    question = wire.decode_request(
        api, sent, url=_text(request.get("url")), headers=_pairs(request.get("headers"))
    )
    if not isinstance(head, dict):
        return (LlmExchange(request=question, response=None),)
    received = b"".join(piece.data for piece in heard if piece.stream == "body")
    status = head.get("status")
    answer = wire.decode_response(
        api, status if isinstance(status, int) else 0, _pairs(head.get("headers")), received
    )
    return (LlmExchange(request=question, response=answer),)


def failure_of_exchange(boundary: str, head: Any, llm: tuple[LlmExchange, ...]) -> Failure | None:
    """Return the failure of a call whose answer arrived and reports an error: a 429, a 500, an error event."""
    for exchange in llm:
        if exchange.response is not None and exchange.response.error is not None:
            error = exchange.response.error
            kind = error.type or "error"
            shown = f"{error.status} {kind}" if error.status and error.status >= 400 else kind
            return Failure(type=shown, message=error.message or "")
    if boundary == "http" and isinstance(head, dict):
        status = head.get("status")
        if isinstance(status, int) and status >= 400:
            return Failure(type=f"HTTP {status}", message=str(head.get("reason") or ""))
    return None


def _pairs(headers: Any) -> dict[str, str]:
    if isinstance(headers, dict):
        return {str(name).lower(): str(value) for name, value in headers.items()}
    if not isinstance(headers, list):
        return {}
    return {
        str(pair[0]).lower(): str(pair[1])
        for pair in headers
        if isinstance(pair, list) and len(pair) == 2
    }


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


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
    # An event that the provider does not understand would drop text: then the whole answer is used instead.
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

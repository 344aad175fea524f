"""What a model said, as it came: the text in each piece of a streamed answer. Pure.

Knows how the APIs spell a delta; whole answers are decoded in `wire`. What cannot be followed piece
by piece (a compression without a memory, a stream of binary frames) is said whole, at its end.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from playhead.llm import LlmExchange
from playhead.llm.http.sse import SseParser, looks_like_sse
from playhead.story.shape import CallItem, Piece


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """Words, and when they came: counted from the call, and on the tape."""

    at_ns: int
    place: int
    text: str
    is_thought: bool = False


def speech_of(call: CallItem) -> list[Utterance]:
    """Everything that was said in answer to this call, in order."""
    if not call.llm:
        return []
    heard = [piece for piece in call.pieces if piece.stream in ("body", "received")]
    if not heard:
        return []
    followed = list(_followed(call, heard))
    whole = [one for exchange in call.llm for one in _whole(exchange, heard[-1])]
    # A protocol that we follow wrongly would drop words; then the order of magnitude is off too.
    if _length(followed) < _length(whole):
        return whole
    return followed


def _length(said: list[Utterance]) -> int:
    return sum(len(one.text) for one in said if not one.is_thought)


def _whole(exchange: LlmExchange, last: Piece) -> Iterator[Utterance]:
    response = exchange.response
    if response is None:
        return
    if response.thinking:
        thought = response.thinking
        yield Utterance(at_ns=last.at_ns, place=last.place, text=thought, is_thought=True)
    if response.text:
        yield Utterance(at_ns=last.at_ns, place=last.place, text=response.text)


def _followed(call: CallItem, heard: list[Piece]) -> Iterator[Utterance]:
    says = _SAYS.get(call.api or "")
    if says is None:
        return
    for piece, message in _messages(call, heard):
        for text, is_thought in says(message):
            if text:
                yield Utterance(
                    at_ns=piece.at_ns, place=piece.place, text=text, is_thought=is_thought
                )


def _messages(call: CallItem, heard: list[Piece]) -> Iterator[tuple[Piece, dict[str, Any]]]:
    """The JSON objects of the stream, each with the piece that completed it."""
    if heard[0].stream == "received":
        for piece in heard:
            yield from ((piece, found) for found in _object(piece.data))
        return
    plain = _plain(call.head)
    if plain is None:
        return
    parser = SseParser()
    begun = False
    for piece in heard:
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
    """How to undo the compression of this answer as it comes; None: not piece by piece."""
    headers = head.get("headers") if isinstance(head, dict) else None
    pairs = [one for one in headers or () if isinstance(one, list) and len(one) == 2]
    coding = {str(name).lower(): str(value).lower() for name, value in pairs}
    used = coding.get("content-encoding", "identity")
    if used == "identity":
        return lambda raw: raw
    if used not in ("gzip", "x-gzip", "deflate"):
        return None
    undo = zlib.decompressobj(wbits=47)  # gzip and zlib, told apart by their first bytes

    def inflate(raw: bytes) -> bytes:
        try:
            return undo.decompress(raw)
        except zlib.error:
            return b""

    return inflate


Said = Iterator[tuple[str, bool]]


def _anthropic(message: dict[str, Any]) -> Said:
    delta = message.get("delta")
    if message.get("type") == "content_block_delta" and isinstance(delta, dict):
        yield _text(delta.get("text")), False
        yield _text(delta.get("thinking")), True


def _chat(message: dict[str, Any]) -> Said:
    for choice in _list(message.get("choices"))[:1]:
        delta = choice.get("delta") if isinstance(choice, dict) else None
        if isinstance(delta, dict):
            yield _text(delta.get("reasoning_content") or delta.get("reasoning")), True
            yield _text(delta.get("content")), False


def _responses(message: dict[str, Any]) -> Said:
    kind = _text(message.get("type"))
    if kind == "response.output_text.delta":
        yield _text(message.get("delta")), False
    elif kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
        yield _text(message.get("delta")), True


def _gemini(message: dict[str, Any]) -> Said:
    for candidate in _list(message.get("candidates"))[:1]:
        content = candidate.get("content") if isinstance(candidate, dict) else None
        for part in _list(content.get("parts")) if isinstance(content, dict) else []:
            if isinstance(part, dict):
                yield _text(part.get("text")), bool(part.get("thought"))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


_SAYS: dict[str, Callable[[dict[str, Any]], Said]] = {
    "anthropic.messages": _anthropic,
    "openai.chat": _chat,
    "openai.responses": _responses,
    "gemini.generate": _gemini,
}

"""Split the body of an answer into its JSON values.

Knows the transports: one document, a growing array, server-sent events (read as tolerantly as browsers do),
concatenated JSON values (WebSocket messages), and the binary event stream of Amazon Bedrock. Does not know the
meaning of the values.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import struct
from dataclasses import dataclass
from typing import Any

from playhead.llm.jsontext import mapping, parse, parse_many, string

_FIELDS = ("data", "event", "id", "retry")


@dataclass(frozen=True, slots=True, kw_only=True)
class SseEvent:
    """One event. ``partial``: the blank line that ends it never arrived."""

    data: str
    event: str | None = None
    id: str | None = None
    partial: bool = False


class SseParser:
    """Incremental parser of server-sent events; chunks may be cut anywhere. Close it to get an unfinished event.

    ``stray`` keeps lines that are not SSE: some servers write a bare JSON error into the stream.
    """

    __slots__ = ("_bytes", "_data", "_event", "_id", "_pending", "stray")

    def __init__(self) -> None:
        # final=False holds back the first bytes of a character that is still to come.
        self._bytes = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._pending: list[str] = []
        self._data: list[str] = []
        self._event: str | None = None
        self._id: str | None = None
        self.stray: list[str] = []

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Return the events that this chunk completes."""
        text = self._bytes.decode(chunk)
        if "\n" not in text and "\r" not in text and not self._ends_in_return():
            self._pending.append(text)
            return []
        text = "".join(self._pending) + text
        # A "\r" at the very end may be half of a "\r\n": wait for the next chunk.
        held = "\r" if text.endswith("\r") else ""
        text = text[: len(text) - len(held)].replace("\r\n", "\n").replace("\r", "\n")
        *lines, rest = text.split("\n")
        self._pending = [rest + held]
        return [event for line in lines if (event := self._line(line)) is not None]

    def close(self) -> SseEvent | None:
        """Return the unfinished event at the end of the stream, if any."""
        rest = "".join(self._pending)
        self._pending = []
        if rest.endswith("\r"):
            # Nothing follows, so it was a line end after all (the blank one, perhaps).
            ended = self._line(rest[:-1])
            if ended is not None:
                return ended
        elif rest:
            self._line(rest)
        return self._take(partial=True)

    def _ends_in_return(self) -> bool:
        return bool(self._pending) and self._pending[-1].endswith("\r")

    def _line(self, line: str) -> SseEvent | None:
        if not line:
            return self._take(partial=False)
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id":
            self._id = value
        elif name and name not in _FIELDS:
            self.stray.append(line)
        return None

    def _take(self, *, partial: bool) -> SseEvent | None:
        data, event = self._data, self._event
        self._data, self._event = [], None
        if not data:
            return None
        return SseEvent(data="\n".join(data), event=event, id=self._id, partial=partial)


def looks_like_sse(body: bytes) -> bool:
    """Return whether the body begins like an event stream, whatever its content type."""
    opening = body[:64].lstrip(b"\xef\xbb\xbf\r\n")
    return opening.startswith((b"data:", b"event:", b"id:", b"retry:", b":"))


def parse_sse(body: bytes) -> tuple[list[SseEvent], str]:
    """Return all events of a body (the last one may be partial), and the lines that are not SSE."""
    parser = SseParser()
    events = parser.feed(body)
    last = parser.close()
    if last is not None:
        events.append(last)
    return events, "\n".join(parser.stray)


_PRELUDE = struct.Struct(">III")
_CHECKSUM = 4
_LENGTH_OF = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
_TEXT = 7
_BYTES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One frame: its headers of text type, and the JSON text that it carries."""

    headers: dict[str, str]
    text: str


def parse_eventstream(body: bytes) -> tuple[list[Message], bool]:
    """Return the complete frames of a body, and whether the body ended at the end of one."""
    messages: list[Message] = []
    at = 0
    while at + _PRELUDE.size <= len(body):
        length, headers_length, _ = _PRELUDE.unpack_from(body, at)
        start = at + _PRELUDE.size
        end = at + length - _CHECKSUM
        if end > len(body) - _CHECKSUM or start + headers_length > end:
            break
        headers = _headers(body[start : start + headers_length])
        messages.append(Message(headers=headers, text=_text(body[start + headers_length : end])))
        at += length
    return messages, at == len(body)


def _headers(block: bytes) -> dict[str, str]:
    headers: dict[str, str] = {}
    at = 0
    while at + 1 < len(block):
        name_end = at + 1 + block[at]
        kind = block[name_end] if name_end < len(block) else -1
        value = name_end + 1
        if kind in (_BYTES, _TEXT):
            size = int.from_bytes(block[value : value + 2], "big")
            value += 2
        elif kind in _LENGTH_OF:
            size = _LENGTH_OF[kind]
        else:
            break
        if kind == _TEXT:
            name = block[at + 1 : name_end].decode("utf-8", "replace")
            headers[name] = block[value : value + size].decode("utf-8", "replace")
        at = value + size
    return headers


def _text(payload: bytes) -> str:
    """Unwrap Bedrock's ``{"bytes": "<base64 of the event>"}``; other payloads are returned unchanged."""
    text = payload.decode("utf-8", "replace")
    wrapped = string(mapping(parse(text).value).get("bytes"))
    if wrapped is None:
        return text
    try:
        return base64.b64decode(wrapped).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return text


DOCUMENT = "document"
STREAM = "stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyFrame:
    """One JSON value. ``partial``: it was cut off and holds the part that arrived."""

    value: Any
    event: str | None = None
    partial: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyFrames:
    """All values of a body. ``done``: OpenAI's final [DONE] arrived."""

    kind: str
    frames: tuple[BodyFrame, ...]
    reason: str | None = None
    done: bool = False
    text: str = ""


def frames_of(content_type: str, body: bytes, only: tuple[bytes, ...] = ()) -> BodyFrames:
    """Return the values of a body; with ``only``, those of a stream that contain one of these words."""
    if content_type == "application/vnd.amazon.eventstream":
        return _of_amazon(body)
    if looks_like_sse(body) or (
        content_type == "text/event-stream" and body[:64].lstrip()[:1] not in (b"{", b"[")
    ):
        return _of_sse(body, tuple(word.decode() for word in only))
    # final=False drops the first bytes of a character whose rest was cut off.
    return of_text(codecs.getincrementaldecoder("utf-8-sig")("replace").decode(body))


def of_text(text: str) -> BodyFrames:
    """Return the values of a text that is JSON, or several JSON values end to end."""
    first = parse(text)
    if first.value is None and not first.whole:
        values, rest = parse_many(text)
        if len(values) + bool(rest.strip()) > 1:
            return _of_values(values, rest)
    if isinstance(first.value, list):
        last = len(first.value) - 1
        frames = tuple(
            BodyFrame(value=value, partial=not first.whole and at == last)
            for at, value in enumerate(first.value)
        )
        return BodyFrames(kind=STREAM, frames=frames, reason=first.reason, text=text)
    frame = BodyFrame(value=first.value, partial=not first.whole)
    return BodyFrames(kind=DOCUMENT, frames=(frame,), reason=first.reason, text=text)


def _of_values(values: list[Any], rest: str) -> BodyFrames:
    frames = [BodyFrame(value=value) for value in values]
    reason = None
    if rest.strip():
        last = parse(rest)
        frames.append(BodyFrame(value=last.value, partial=True))
        reason = last.reason
    return BodyFrames(kind=STREAM, frames=tuple(frames), reason=reason)


def _of_sse(body: bytes, only: tuple[str, ...]) -> BodyFrames:
    events, stray = parse_sse(body)
    frames: list[BodyFrame] = []
    done = False
    reason = None
    for event in events:
        if event.data.strip() == "[DONE]":
            done = True
        elif event.data and (not only or any(word in event.data for word in only)):
            parsed = parse(event.data)
            frames.append(
                BodyFrame(value=parsed.value, event=event.event, partial=not parsed.whole)
            )
            reason = reason or parsed.reason
    if stray.strip():
        # Google breaks off an event stream by writing a bare JSON error into it.
        bare = parse(stray)
        if bare.whole:
            frames.append(BodyFrame(value=bare.value))
    return BodyFrames(kind=STREAM, frames=tuple(frames), reason=reason, done=done)


def _of_amazon(body: bytes) -> BodyFrames:
    messages, whole = parse_eventstream(body)
    frames: list[BodyFrame] = []
    reason = None if whole else "the event stream is cut off"
    for message in messages:
        parsed = parse(message.text)
        reason = reason or parsed.reason
        kind = message.headers.get(":exception-type") or message.headers.get(":event-type")
        frames.append(BodyFrame(value=parsed.value, event=kind, partial=not parsed.whole))
    return BodyFrames(kind=STREAM, frames=tuple(frames), reason=reason)

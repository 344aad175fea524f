"""Server-sent events, read as tolerantly as browsers do. Knows no JSON and no protocol."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

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
        """The events that this chunk completes."""
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
        """The event that was under way when the stream ended, if any."""
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
    """Whether the body begins like an event stream, whatever its content type."""
    opening = body[:64].lstrip(b"\xef\xbb\xbf\r\n")
    return opening.startswith((b"data:", b"event:", b"id:", b"retry:", b":"))


def parse(body: bytes) -> tuple[list[SseEvent], str]:
    """Return all events of a body (the last one may be partial), and the lines that are not SSE."""
    parser = SseParser()
    events = parser.feed(body)
    last = parser.close()
    if last is not None:
        events.append(last)
    return events, "\n".join(parser.stray)

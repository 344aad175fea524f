"""Parse HTTP/1.1 answers into head and body, and serialise taped ones for a client's own parser.

`AnswerReader.read` takes the bytes that a recorder observes; `blocks` is its inverse, for a taped answer. Knows
framing (RFC 9112); does not know clients or the deck.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

_LONGEST_HEAD = 1 << 20
_LONGEST_LINE = 1 << 16
_BODILESS = (204, 304)
_FOLDED = frozenset(" \t")
_LONG, _CODED = len("content-length"), len("transfer-encoding")
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")  # clients accept bare line feeds, too


class NotHttp(ValueError):
    """The bytes are not an HTTP/1 answer."""


class Head(NamedTuple):
    """The head of an answer. Header names keep the case in which they were sent."""

    status: int
    reason: str
    version: str
    headers: list[tuple[str, str]]

    def value(self, name: str) -> str | None:
        """Return all values of a header, joined; None if the header is missing."""
        values = [value for key, value in self.headers if key.lower() == name]
        return ", ".join(values) if values else None


class ChunkReader:
    """Decodes `transfer-encoding: chunked`. The input may be split at any byte."""

    __slots__ = ("_held", "_left", "_state", "done", "sizes")

    def __init__(self) -> None:
        self._state = "size"
        self._held = b""
        self._left = 0
        self.done = False
        # The sizes of the chunks so far, as the sender framed them.
        self.sizes: list[int] = []

    def read(self, data: bytes) -> bytes:
        """Return the payload in `data`."""
        payload: list[bytes] = []
        at = 0
        while at < len(data) and not self.done:
            if self._state == "payload":
                piece = data[at : at + self._left]
                payload.append(piece)
                at += len(piece)
                self._left -= len(piece)
                if not self._left:
                    self._state = "end"
                continue
            end = data.find(b"\n", at)
            if end < 0:
                self._hold(data[at:])
                break
            line = (self._held + data[at : end + 1]).rstrip(b"\r\n")
            self._held = b""
            at = end + 1
            self._line(line)
        return payload[0] if len(payload) == 1 else b"".join(payload)

    def _hold(self, rest: bytes) -> None:
        self._held += rest
        if len(self._held) > _LONGEST_LINE:
            raise NotHttp("a chunk's size takes more than 64 KiB")

    def _line(self, line: bytes) -> None:
        if self._state == "end":
            self._state = "size"
        elif self._state == "trailer":
            self.done = not line
        else:
            try:
                self._left = int(line.partition(b";")[0], 16)
            except ValueError:
                raise NotHttp(f"not the size of a chunk: {line[:40]!r}") from None
            self._state = "payload" if self._left else "trailer"
            if self._left:
                self.sizes.append(self._left)


class AnswerReader:
    """Parses one answer to a request with the given method."""

    __slots__ = ("_held", "_left", "_method", "_until_close", "chunks", "done", "head")

    def __init__(self, method: str) -> None:
        self._method = method.upper()
        self._held = b""
        self._left = 0
        self._until_close = False
        self.head: Head | None = None
        self.chunks: ChunkReader | None = None
        self.done = False

    def read(self, data: bytes) -> bytes:
        """Return the part of the body in `data`. Sets `head` as soon as the head is complete."""
        while self.head is None:
            rest = self._read_head(data)
            if rest is None:
                return b""
            data = rest
        if self.done or not data:
            return b""
        if self.chunks is not None:
            payload = self.chunks.read(data)
            self.done = self.chunks.done
            return payload
        if self._until_close:
            return data
        payload = data[: self._left]
        self._left -= len(payload)
        self.done = not self._left
        return payload

    def end(self) -> bool:
        """Return whether the answer is complete, now that the connection has ended."""
        self.done = self.done or self._until_close
        return self.done

    def _read_head(self, data: bytes) -> bytes | None:
        """Parse the head and return the bytes after it; None if the head is incomplete."""
        data = self._held + data
        end = _BLANK_LINE.search(data)
        if end is None:
            self._held = data
            if len(data) > _LONGEST_HEAD or not b"HTTP/".startswith(data[:5]):
                raise NotHttp(f"not the head of an answer: {data[:40]!r}")
            return None
        self._held = b""
        head = read_head(data[: end.start()])
        rest = data[end.end() :]
        if 100 <= head.status < 200 and head.status != 101:
            return rest  # an interim answer (1xx): the final one follows
        self.head = head
        self._frame(head)
        return rest

    def _frame(self, head: Head) -> None:
        if self._method == "HEAD" or head.status in _BODILESS or head.status == 101:
            self.done = True
            return
        length: str | None = None
        for name, value in head.headers:
            # The length of the name is checked first: it is cheap, and most headers are neither of the two.
            size = len(name)
            if size == _CODED and name.lower() == "transfer-encoding":
                if "chunked" in value.lower():
                    self.chunks = ChunkReader()
                    return
            elif size == _LONG and length is None and name.lower() == "content-length":
                length = value
        if length is None:
            self._until_close = True
        else:
            self._left = int(length.partition(",")[0])
            self.done = not self._left


def read_head(raw: bytes) -> Head:
    lines = raw.decode("latin-1").replace("\r\n", "\n").split("\n")
    first = lines[0].rstrip("\r")
    version, _, rest = first.partition(" ")
    status, _, reason = rest.partition(" ")
    if not version.startswith("HTTP/") or not status.isdigit():
        raise NotHttp(f"not a status line: {first[:40]!r}")
    headers: list[tuple[str, str]] = []
    for line in lines[1:]:
        name, _, value = line.partition(":")
        if name[:1] in _FOLDED and headers:
            headers[-1] = (headers[-1][0], f"{headers[-1][1]} {line.strip()}")
            continue
        headers.append((name.rstrip("\r"), value.strip()))
    return Head(int(status), reason, version, headers)


def blocks(
    head: dict[str, Any], pieces: Sequence[bytes], *, whole: bool, sizes: Sequence[int] = ()
) -> Iterator[bytes]:
    """Yield a taped answer as a peer would send it: the head, then a block for each piece.

    `sizes` are the sizes of the chunks, if they differ from those of the pieces. A body that is not `whole` stops
    where the tape ends, with its framing incomplete.
    """
    total = sum(map(len, pieces))
    headers = [(str(pair[0]), str(pair[1])) for pair in head.get("headers") or ()]
    parsed = Head(status=int(head["status"]), reason="", version="", headers=headers)
    if "chunked" in (parsed.value("transfer-encoding") or "").lower():
        yield _head(head, headers)
        yield from _chunked(pieces, list(sizes) if sum(sizes) == total else [*map(len, pieces)])
        if whole:
            yield b"0\r\n\r\n"
        return
    if whole and total:
        # Redaction may have changed the length of the body; the parser must find its end.
        headers = [
            (name, str(total) if name.lower() == "content-length" else value)
            for name, value in headers
        ]
    yield _head(head, headers)
    yield from pieces


def _head(head: dict[str, Any], headers: list[tuple[str, str]]) -> bytes:
    version = str(head.get("http_version") or "HTTP/1.1")
    first = f"{version} {head['status']} {head.get('reason') or ''}"
    lines = [first, *(f"{name}: {value}" for name, value in headers), "", ""]
    return "\r\n".join(lines).encode("latin-1")


def _chunked(pieces: Sequence[bytes], sizes: list[int]) -> Iterator[bytes]:
    """Yield the pieces, framed in chunks of these sizes."""
    left = 0
    ahead = iter(sizes)
    for piece in pieces:
        block: list[bytes] = []
        at = 0
        while at < len(piece):
            if not left:
                left = next(ahead)
                block.append(b"%x\r\n" % left)
            part = piece[at : at + left]
            block.append(part)
            at += len(part)
            left -= len(part)
            if not left:
                block.append(b"\r\n")
        yield b"".join(block)

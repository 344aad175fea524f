"""Find where HTTP/1 messages begin and end in the bytes of one direction of a connection. Pure.

Knows the framing of HTTP/1: first lines, `Content-Length`, chunks, upgrades. Does not check messages: bytes that are
not HTTP/1 (another protocol, a broken head) have no further messages. An HTTP/2 connection is one message.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

    # A parser that is resumed when more bytes have come.
    Reading = Generator[None, None, bytes]

_REQUEST_LINE = re.compile(rb"([A-Z]{1,20}) (\S{1,8000}) HTTP/1\.[01]")
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] (\d{3})(?: |$)")
_HTTP_2 = b"PRI * HTTP/2.0"
_LARGEST_HEAD = 128 * 1024
_SHOWN = 200
_SWITCHED = 101
_WITHOUT_BODY = frozenset({204, 304})


class _NotHttp(Exception):
    """The bytes are not HTTP/1, or belong to another protocol from here on."""


class MessageFrames:
    """Reads one direction. `feed` returns `("begins", TEXT)` for each first line that is complete, with a name such as
    `POST /ask` or a status, and `("ends", "")` for each message that is complete.
    """

    def __init__(self, *, is_answer: bool) -> None:
        self._is_answer = is_answer
        self._data = bytearray()
        # Bytes of a body that are still to come. They are counted and not kept.
        self._skipped = 0
        self._found: list[tuple[str, str]] = []
        self._is_between = True
        # The methods of requests whose answers have not begun: an answer to HEAD has no body.
        self._methods: list[str] = []
        self._parser: Generator[None, None, None] | None = self._read()

    @property
    def is_between(self) -> bool:
        """Return whether the next byte begins a message."""
        return self._is_between and not self._data

    def expect(self, method: str) -> None:
        """Note the method of a request, for the reader of the answers."""
        self._methods.append(method)

    def feed(self, data: bytes) -> list[tuple[str, str]]:
        if self._parser is None:
            return []
        at = min(self._skipped, len(data))
        self._skipped -= at
        if self._skipped:
            return []
        self._data += data[at:]
        try:
            next(self._parser)
        except _NotHttp:
            self._parser = None
            self._data.clear()
        found, self._found = self._found, []
        return found

    def _read(self) -> Generator[None, None, None]:
        while True:
            line, self._is_between = b"", True
            while not line:  # clients may send empty lines between two requests
                line = yield from self._line()
            self._is_between = False
            status = self._begin(line)
            length, is_chunked = yield from self._headers()
            if self._is_answer and status < 200 and status != _SWITCHED:
                self._found.pop()  # 100 Continue: the answer itself follows
                continue
            if self._is_answer:
                method = self._methods.pop(0) if self._methods else ""
                if method == "HEAD" or status in _WITHOUT_BODY:
                    length, is_chunked = 0, False
                elif status == _SWITCHED or (length is None and not is_chunked):
                    raise _NotHttp  # until the end of the connection
            while is_chunked:
                size = _hexadecimal((yield from self._line()))
                if not size:
                    yield from self._headers()
                    break
                yield from self._skip(size)
                yield from self._line()
            yield from self._skip(0 if is_chunked else length or 0)
            self._found.append(("ends", ""))

    def _begin(self, line: bytes) -> int:
        """Report the message that this line begins. Return the status of an answer."""
        if not self._is_answer and line == _HTTP_2:
            self._found.append(("begins", "HTTP/2 connection"))
            raise _NotHttp
        match = (_STATUS_LINE if self._is_answer else _REQUEST_LINE).match(line)
        if match is None:
            raise _NotHttp
        if self._is_answer:
            self._found.append(("begins", match[1].decode()))
            return int(match[1])
        path = match[2].decode("ascii", "replace").partition("?")[0]
        self._found.append(("begins", f"{match[1].decode()} {path[:_SHOWN]}"))
        return 0

    def _headers(self) -> Generator[None, None, tuple[int | None, bool]]:
        """Read up to the empty line. Return the length of the body, if it is given, and whether it is chunked."""
        length, is_chunked = None, False
        while line := (yield from self._line()):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = _decimal(value)
            elif name.lower() == b"transfer-encoding":
                is_chunked = b"chunked" in value.lower()
        return length, is_chunked

    def _line(self) -> Reading:
        while (at := self._data.find(b"\n")) < 0:
            if len(self._data) > _LARGEST_HEAD:
                raise _NotHttp
            yield
        line = bytes(self._data[:at]).rstrip(b"\r")
        del self._data[: at + 1]
        return line

    def _skip(self, size: int) -> Generator[None, None, None]:
        here = min(size, len(self._data))
        del self._data[:here]
        self._skipped = size - here
        if self._skipped:
            yield  # `feed` resumes here when all of it has come


def _decimal(value: bytes) -> int:
    try:
        return int(value)
    except ValueError:
        raise _NotHttp from None


def _hexadecimal(line: bytes) -> int:
    try:
        return int(line.partition(b";")[0], 16)
    except ValueError:
        raise _NotHttp from None

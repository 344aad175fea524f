"""The server's side of HTTP/1.1 on asyncio streams, and the delivery of frames with a script's timing and faults.

Written by hand because tests need what a server library forbids: half an event, a body shorter than its
Content-Length, a reset in the middle, one socket write per event.
"""

from __future__ import annotations

import asyncio
import contextlib
import http
import json
import socket
import struct
from collections.abc import Iterable
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from playhead.llm.llm_script import Ending, ReceivedRequest, Reply, decode_json

Headers = Iterable[tuple[str, str]]
HEAD_LIMIT = 1 << 20


class BadRequest(ValueError):
    """The bytes are not an HTTP request; the text says why."""


async def read_request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> ReceivedRequest | None:
    """Read the next request of the connection; None: the client has closed it."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial.strip():
            raise BadRequest("the connection ended within the request's head") from error
        return None
    except asyncio.LimitOverrunError as error:
        raise BadRequest(f"the request's head is over {HEAD_LIMIT} bytes") from error
    first, *lines = head.decode("latin-1").strip("\r\n").split("\r\n")
    try:
        method, target, version = first.split(" ")
    except ValueError as error:
        raise BadRequest(f"not a request line: {first[:80]!r}") from error
    headers = _headers(lines)
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    body = await _read_body(reader, headers)
    parts = urlsplit(target)
    return ReceivedRequest(
        method=method,
        path=unquote(parts.path),
        query=dict(parse_qsl(parts.query, keep_blank_values=True)),
        headers=headers,
        body=body,
        json=decode_json(body, headers.get("content-encoding")),
        http_version=version.removeprefix("HTTP/"),
    )


def _headers(lines: list[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise BadRequest(f"not a header line: {line[:80]!r}")
        key = name.strip().lower()
        value = value.strip()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    return headers


async def _read_body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    try:
        if "chunked" in headers.get("transfer-encoding", "").lower():
            return await _read_chunks(reader)
        return await reader.readexactly(int(headers.get("content-length") or 0))
    except asyncio.IncompleteReadError as error:
        raise BadRequest("the connection ended within the request's body") from error
    except ValueError as error:
        raise BadRequest(f"the length of the body is not a number: {error}") from error


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    while await reader.readuntil(b"\r\n") != b"\r\n":
        continue
    return bytes(body)


class ServedExchange:
    """One request and the connection that its answer goes out on."""

    def __init__(
        self, request: ReceivedRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.request = request
        self.reader = reader
        self.writer = writer
        self.started = False
        connection = request.headers.get("connection", "").lower()
        self.keeps_alive = request.http_version == "1.1" and "close" not in connection
        self._chunked = False

    async def answer(
        self, status: int, body: bytes, headers: Headers = (), *, sent: int | None = None
    ) -> None:
        """Send a whole answer. With `sent`, only that many bytes of the body under the full Content-Length."""
        bodiless = status in {204, 304} or self.request.method == "HEAD"
        lengths = [] if status == 204 else [("content-length", str(len(body)))]
        payload = b"" if bodiless else body[:sent]
        await self._write(self._head(status, [*headers, *lengths]) + payload)

    async def answer_json(self, status: int, value: Any, headers: Headers = ()) -> None:
        body = encode_json(value)
        await self.answer(status, body, [("content-type", "application/json"), *headers])

    async def open_stream(self, status: int, headers: Headers = (), *, framed: bool = True) -> None:
        """Begin an answer of unknown length: chunked, else delimited by the end of connection."""
        self._chunked = framed and self.request.http_version == "1.1"
        encoding = [("transfer-encoding", "chunked")] if self._chunked else []
        self.keeps_alive = self.keeps_alive and self._chunked
        await self._write(self._head(status, [*headers, *encoding]))

    async def send(self, data: bytes) -> None:
        """Send one piece of a stream: one chunk, one socket write."""
        await self._write(self._framed(data))

    async def send_half(self, data: bytes) -> None:
        """Send the first half of a piece. The chunk itself is complete; the event in it is torn."""
        await self._write(self._framed(data[: len(data) // 2]))

    async def finish(self) -> None:
        if self._chunked:
            await self._write(b"0\r\n\r\n")

    async def end(self, how: Ending) -> None:
        """End the connection; the answer stays unfinished."""
        self.keeps_alive = False
        await end_connection(self.reader, self.writer, how)

    def _framed(self, data: bytes) -> bytes:
        return b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data

    def _head(self, status: int, headers: Headers) -> bytes:
        try:
            phrase = http.HTTPStatus(status).phrase
        except ValueError:
            phrase = "Unknown"
        closing = [] if self.keeps_alive else [("connection", "close")]
        lines = [f"{name}: {value}" for name, value in [*headers, *closing]]
        return "\r\n".join([f"HTTP/1.1 {status} {phrase}", *lines, "", ""]).encode("latin-1")

    async def _write(self, data: bytes) -> None:
        self.started = True
        self.writer.write(data)
        await self.writer.drain()


async def end_connection(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, how: Ending
) -> None:
    if how == "stall":
        with contextlib.suppress(ConnectionError):
            while await reader.read(65536):
                continue
    elif how == "reset":
        # Linger 0 makes close send RST instead of FIN: the client sees "connection reset".
        wire: socket.socket = writer.get_extra_info("socket")
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        return
    writer.close()


def encode_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


class Sink(Protocol):
    """The destination of frames: an HTTP answer or a WebSocket."""

    async def send(self, data: bytes) -> None: ...

    async def send_half(self, data: bytes) -> None: ...

    async def finish(self) -> None: ...

    async def end(self, how: Ending) -> None: ...


async def deliver(frames: Iterable[bytes], reply: Reply, sink: Sink) -> None:
    """Send each frame; a cut after the last one only omits the end of the stream."""
    cut = reply.cut
    for index, frame in enumerate(frames):
        if cut is not None and index == cut.after:
            if cut.mid_event:
                await sink.send_half(frame)
            await sink.end(cut.how)
            return
        if index and reply.chunk_delay:
            await asyncio.sleep(reply.chunk_delay)
        await sink.send(frame)
    if cut is not None:
        await sink.end(cut.how)
        return
    await sink.finish()

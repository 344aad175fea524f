"""The server's side of a WebSocket (RFC 6455): text messages, pings, close. Knows no API.

Written by hand and not with the websockets library: a recorder that hooks that library in the
same process would record the server's half of each conversation as well.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import struct

from playhead.llm.scripting.llm_script import Ending
from playhead.testing.scripted_llm.server_http1 import ServedExchange, end_connection

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA


def asks_for_websocket(exchange: ServedExchange) -> bool:
    headers = exchange.request.headers
    return headers.get("upgrade", "").lower() == "websocket" and "sec-websocket-key" in headers


class WebSocket:
    """An accepted WebSocket, open until the client closes it or `end` is called."""

    def __init__(self, exchange: ServedExchange) -> None:
        self._exchange = exchange
        self._reader = exchange.reader
        self._writer = exchange.writer

    async def accept(self) -> None:
        key = self._exchange.request.headers["sec-websocket-key"].encode("latin-1")
        accepted = base64.b64encode(
            hashlib.sha1(key + _GUID, usedforsecurity=False).digest()
        ).decode()
        self._exchange.keeps_alive = True
        headers = [("upgrade", "websocket"), ("connection", "Upgrade")]
        await self._exchange.open_stream(
            101, [*headers, ("sec-websocket-accept", accepted)], framed=False
        )
        self._exchange.keeps_alive = False

    async def receive(self) -> bytes | None:
        """The next message, text or binary; None when the client has gone."""
        message = bytearray()
        while True:
            try:
                final, opcode, payload = await self._frame()
            except (asyncio.IncompleteReadError, ConnectionError):
                return None
            if opcode == _CLOSE:
                await self._write(_CLOSE, payload[:2])
                self._writer.close()
                return None
            if opcode == _PING:
                await self._write(_PONG, payload)
            elif opcode in (_TEXT, _BINARY, _CONTINUATION):
                message += payload
                if final:
                    return bytes(message)

    async def send(self, data: bytes) -> None:
        """One text message, one socket write."""
        await self._write(_TEXT, data)

    async def send_half(self, data: bytes) -> None:
        """The first half of a message's frame: its length promises more than ever comes."""
        frame = _encoded(_TEXT, data)
        self._writer.write(frame[: len(frame) // 2])
        await self._writer.drain()

    async def finish(self) -> None:
        """Nothing: a message ends with itself, and the connection stays for the next."""

    async def end(self, how: Ending) -> None:
        await end_connection(self._reader, self._writer, how)

    async def _frame(self) -> tuple[bool, int, bytes]:
        first, second = await self._reader.readexactly(2)
        length = second & 0x7F
        if length == 126:
            (length,) = struct.unpack("!H", await self._reader.readexactly(2))
        elif length == 127:
            (length,) = struct.unpack("!Q", await self._reader.readexactly(8))
        mask = await self._reader.readexactly(4) if second & 0x80 else b"\0\0\0\0"
        payload = await self._reader.readexactly(length)
        return bool(first & 0x80), first & 0x0F, _unmasked(payload, mask)

    async def _write(self, opcode: int, payload: bytes) -> None:
        self._writer.write(_encoded(opcode, payload))
        await self._writer.drain()


def _unmasked(payload: bytes, mask: bytes) -> bytes:
    # As one big number: a codex prompt is 100 KB, and a loop over its bytes takes 10 ms.
    length = len(payload)
    key = (mask * (length // 4 + 1))[:length]
    masked = int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")
    return masked.to_bytes(length, "big")


def _encoded(opcode: int, payload: bytes) -> bytes:
    length = len(payload)
    if length < 126:
        head = struct.pack("!BB", 0x80 | opcode, length)
    elif length < 1 << 16:
        head = struct.pack("!BBH", 0x80 | opcode, 126, length)
    else:
        head = struct.pack("!BBQ", 0x80 | opcode, 127, length)
    return head + payload

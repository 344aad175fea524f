"""The server's side of a WebSocket (RFC 6455), and OpenAI's Responses API served on it: one answer per message.

Written by hand and not with the websockets library: a recorder that hooks that library in the same process
would also record the server's half of each conversation. The encoder supplies the events of an answer.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import struct
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice

from playhead.llm.llm_script import Ending, ReceivedRequest, Reply, ScriptedFailure, decode_json
from playhead.llm.openai.encode_responses import OpenAiResponsesEncoder
from playhead.llm.reply_encoder import IdSource, Json
from playhead.testing.scripted_llm.server_http1 import (
    ServedExchange,
    deliver,
    encode_json,
    end_connection,
)

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
        """The next message, text or binary; None when the client has disconnected."""
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
        """Send one text message in one socket write."""
        await self._write(_TEXT, data)

    async def send_half(self, data: bytes) -> None:
        """Send the first half of a message's frame: its length promises more bytes than arrive."""
        frame = _encoded(_TEXT, data)
        self._writer.write(frame[: len(frame) // 2])
        await self._writer.drain()

    async def finish(self) -> None:
        """Do nothing: a message needs no end, and the connection stays open for the next one."""

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
    # XOR as one big number: a codex prompt is 100 KB, and a loop over its bytes takes 10 ms.
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


Ask = Callable[[ReceivedRequest], Awaitable[tuple[Reply, IdSource]]]
Note = Callable[[ReceivedRequest], ReceivedRequest]
NewIds = Callable[[str], IdSource]


class ResponsesSocket:
    """Serves one WebSocket; `ask` finds replies, `note` keeps requests, `ids` makes ids."""

    def __init__(self, encoder: OpenAiResponsesEncoder, ask: Ask, note: Note, ids: NewIds) -> None:
        self._encoder = encoder
        self._ask = ask
        self._note = note
        self._ids = ids
        # One answer at a time in each stream of the connection, as in the real API.
        self._streams: defaultdict[object, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def serve(self, exchange: ServedExchange) -> None:
        socket = WebSocket(exchange)
        await socket.accept()
        answers: set[asyncio.Task[None]] = set()
        try:
            while (message := await socket.receive()) is not None:
                body = decode_json(message)
                request = replace(exchange.request, method="WS", body=message, json=body)
                # A task, so that pings are answered and a close is seen while it streams.
                task = asyncio.create_task(self._answer(socket, request))
                answers.add(task)
                task.add_done_callback(answers.discard)
        finally:
            for task in answers:
                task.cancel()
            await asyncio.gather(*answers, return_exceptions=True)

    async def _answer(self, socket: WebSocket, request: ReceivedRequest) -> None:
        stream = request.json.get("stream_id") if isinstance(request.json, dict) else None
        async with self._streams[stream]:
            try:
                await self._respond(socket, request)
            except ConnectionError:
                await socket.end("close")
            except Exception as error:  # noqa: BLE001  a message may hold anything; its sender gets the error
                failure = ScriptedFailure(status=500, message=f"{type(error).__name__}: {error}")
                await socket.send(encode_json(self._encoder.message_error(request, failure)))

    async def _respond(self, socket: WebSocket, request: ReceivedRequest) -> None:
        if not isinstance(request.json, dict) or request.json.get("type") != "response.create":
            self._note(request)
            failure = ScriptedFailure(
                status=400, message="Expected a message of type response.create."
            )
            await socket.send(encode_json(self._encoder.message_error(request, failure)))
            return
        request = self._note(self._encoder.read(request))
        if request.json.get("generate") is False:
            ready = self._encoder.warm_up(request, self._ids(f"warm.{request.number}"))
            await deliver(_frames(ready), Reply(), socket)
            return
        reply, ids = await self._ask(request)
        if reply.delay:
            await asyncio.sleep(reply.delay)
        await deliver(_frames(self._events(request, reply, ids)), reply, socket)

    def _events(self, request: ReceivedRequest, reply: Reply, ids: IdSource) -> Iterable[Json]:
        if reply.error is None:
            return self._encoder.events(request, reply, ids)
        begun = islice(self._encoder.events(request, reply, ids), reply.error.after or 0)
        return chain(begun, [self._encoder.message_error(request, reply.error)])


def _frames(events: Iterable[Json]) -> Iterator[bytes]:
    return map(encode_json, events)

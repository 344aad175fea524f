"""Serve OpenAI's Responses API on a WebSocket: one connection, one answer per message.

Knows the order of messages on a connection; the events come from the encoder.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice

from playhead.llm.openai.encode_responses import OpenAiResponsesEncoder
from playhead.llm.scripting.id_source import IdSource
from playhead.llm.scripting.llm_script import Reply, ScriptedFailure
from playhead.llm.scripting.received_request import ReceivedRequest, decode_json
from playhead.llm.scripting.reply_encoder import Json
from playhead.testing.scripted_llm.deliver import deliver
from playhead.testing.scripted_llm.server_http1 import ServedExchange, encode_json
from playhead.testing.scripted_llm.server_websocket import WebSocket

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
        # One answer at a time in each stream of the connection, as the API has it.
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

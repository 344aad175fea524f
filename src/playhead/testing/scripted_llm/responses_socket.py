"""OpenAI Responses over a WebSocket: one connection, a message in for each answer out.

Knows the order of messages on a connection; the events are the Responses wire's.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice

from playhead.testing.scripted_llm.deliver import deliver
from playhead.testing.scripted_llm.llm_script import Failure, Reply
from playhead.testing.scripted_llm.mint import Mint
from playhead.testing.scripted_llm.openai_responses_wire import OpenAIResponsesWire
from playhead.testing.scripted_llm.received import Request, decode_json
from playhead.testing.scripted_llm.server_http1 import Exchange, encode_json
from playhead.testing.scripted_llm.server_websocket import WebSocket
from playhead.testing.scripted_llm.wire import Json

Ask = Callable[[Request], Awaitable[tuple[Reply, Mint]]]
Note = Callable[[Request], Request]
NewMint = Callable[[str], Mint]


class ResponsesSocket:
    """Serves one WebSocket; `ask` finds replies, `note` keeps requests, `mint` makes ids."""

    def __init__(self, wire: OpenAIResponsesWire, ask: Ask, note: Note, mint: NewMint) -> None:
        self._wire = wire
        self._ask = ask
        self._note = note
        self._mint = mint
        # One answer at a time in each stream of the connection, as the API has it.
        self._streams: defaultdict[object, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def serve(self, exchange: Exchange) -> None:
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

    async def _answer(self, socket: WebSocket, request: Request) -> None:
        stream = request.json.get("stream_id") if isinstance(request.json, dict) else None
        async with self._streams[stream]:
            try:
                await self._respond(socket, request)
            except ConnectionError:
                await socket.end("close")
            except Exception as error:  # noqa: BLE001  a message may hold anything; its sender is told
                failure = Failure(status=500, message=f"{type(error).__name__}: {error}")
                await socket.send(encode_json(self._wire.message_error(request, failure)))

    async def _respond(self, socket: WebSocket, request: Request) -> None:
        if not isinstance(request.json, dict) or request.json.get("type") != "response.create":
            self._note(request)
            failure = Failure(status=400, message="Expected a message of type response.create.")
            await socket.send(encode_json(self._wire.message_error(request, failure)))
            return
        request = self._note(self._wire.read(request))
        if request.json.get("generate") is False:
            ready = self._wire.warm_up(request, self._mint(f"warm.{request.number}"))
            await deliver(_frames(ready), Reply(), socket)
            return
        reply, mint = await self._ask(request)
        if reply.delay:
            await asyncio.sleep(reply.delay)
        await deliver(_frames(self._events(request, reply, mint)), reply, socket)

    def _events(self, request: Request, reply: Reply, mint: Mint) -> Iterable[Json]:
        if reply.error is None:
            return self._wire.events(request, reply, mint)
        begun = islice(self._wire.events(request, reply, mint), reply.error.after or 0)
        return chain(begun, [self._wire.message_error(request, reply.error)])


def _frames(events: Iterable[Json]) -> Iterator[bytes]:
    return map(encode_json, events)

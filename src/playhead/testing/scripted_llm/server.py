"""The scripted LLM: a server on loopback that answers in the form of real APIs, with replies from a script.

Knows HTTP exchanges and keeps the requests. The encoders know the APIs, the selection knows the script.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from itertools import chain, islice

from playhead.llm.llm_script import ReceivedRequest, Reply, ScriptedFailure
from playhead.llm.reply_encoder import IdSource, ReplyEncoder, prompt_tokens, retry_headers
from playhead.testing.scripted_llm.loopback import LoopbackServer
from playhead.testing.scripted_llm.reply_selection import (
    CallableSelection,
    ReplySelection,
    Respond,
    ScriptRanOut,
    ScriptSelection,
    ServedApis,
    is_hello,
    is_model_list,
)
from playhead.testing.scripted_llm.script_file import ScriptSource, load_script
from playhead.testing.scripted_llm.server_http1 import ServedExchange, deliver, encode_json
from playhead.testing.scripted_llm.server_websocket import ResponsesSocket, asks_for_websocket

Route = Callable[[ServedExchange], Awaitable[None]]


class ScriptedLLM(LoopbackServer):
    """A model that answers from a script, or from a function of the request.

    `with ScriptedLLM(["Hello."]) as llm:` serves on `llm.url` until the block ends.
    """

    def __init__(
        self,
        script: ScriptSource | Respond,
        *,
        seed: int | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        routes: Mapping[str, Route] | None = None,
    ) -> None:
        super().__init__(host=host, port=port)
        self._seed = seed
        self._routes = dict(routes or {})
        self._apis = ServedApis()
        self._keys = self._apis.fake_keys(self._ids("keys"))
        self._models = self._apis.default_models
        self._selection: ReplySelection
        if callable(script):
            self._selection = CallableSelection(script)
        else:
            loaded = load_script(script)
            self._selection = ScriptSelection(loaded)
            named = [reply.model for reply in loaded.replies if reply.model]
            self._models = list(dict.fromkeys([*named, *self._models]))
        self._requests: list[ReceivedRequest] = []
        self._arrived = threading.Condition()

    @property
    def requests(self) -> list[ReceivedRequest]:
        """All requests so far, in the order of arrival."""
        with self._arrived:
            return list(self._requests)

    def wait_for_requests(self, count: int, timeout: float = 10.0) -> list[ReceivedRequest]:
        """Block until `count` requests have arrived; TimeoutError after `timeout` seconds."""
        with self._arrived:
            if not self._arrived.wait_for(lambda: len(self._requests) >= count, timeout):
                raise TimeoutError(f"{len(self._requests)} of {count} requests in {timeout} s")
            return list(self._requests)

    def environ(self) -> dict[str, str]:
        """Return the variables that point SDKs here, with keys that look real and open nothing."""
        return {**self._apis.environ(self.url), **self._keys}

    def stop(self) -> None:
        super().stop()
        self._selection.close()

    async def handle(self, exchange: ServedExchange) -> None:
        request = exchange.request
        if request.path in self._routes:
            exchange.request = self._note(request)
            await self._routes[request.path](exchange)
            return
        if asks_for_websocket(exchange) and request.path.rstrip("/").endswith("/responses"):
            socket = ResponsesSocket(self._apis.responses, self._ask, self._note, self._ids)
            await socket.serve(exchange)
            return
        found = self._apis.endpoint(request.method, request.path)
        if found is not None:
            await self._serve_api(exchange, found[0], generate=found[1] == "generate")
            return
        self._note(request)
        if is_hello(request.method, request.path):
            await exchange.answer_json(200, {"message": "hello"})
            return
        if is_model_list(request.method, request.path):
            models = self._apis.models(request, self._models)
            if models is not None:
                await exchange.answer_json(200, models)
                return
        message = (
            f"Nothing is served at {request.method} {request.path}. Served: {self._apis.served}."
        )
        error = {"type": "not_found_error", "message": message, "param": None, "code": None}
        await exchange.answer_json(404, {"type": "error", "error": error})

    async def _serve_api(
        self, exchange: ServedExchange, encoder: ReplyEncoder, *, generate: bool
    ) -> None:
        request = exchange.request
        if not isinstance(request.json, dict):
            self._note(request)
            failure = ScriptedFailure(
                status=400, message="The body of the request is not a JSON object."
            )
            await self._fail(exchange, encoder, failure, self._ids("malformed"))
            return
        request = exchange.request = self._note(encoder.read(request))
        if not generate:
            total = prompt_tokens(request)
            await exchange.answer_json(200, encoder.token_count(total))
            return
        reply, ids = await self._ask(request)
        if reply.delay:
            await asyncio.sleep(reply.delay)
        if reply.error is not None and (reply.error.after is None or not request.stream):
            await self._fail(exchange, encoder, reply.error, ids)
        elif request.stream:
            await self._stream(exchange, encoder, reply, ids)
        else:
            await self._whole(exchange, encoder, reply, ids)

    async def _ask(self, request: ReceivedRequest) -> tuple[Reply, IdSource]:
        """Choose the reply to a request; an error in choosing becomes an error of the model."""
        try:
            chosen = await self._selection.choose(request)
        except ScriptRanOut as error:
            message = str(error)
        except Exception as error:  # noqa: BLE001  it is the user's function; the agent gets the message
            message = f"The function that answers raised {type(error).__name__}: {error}"
        else:
            return chosen.reply, self._ids(chosen.key)
        failure = ScriptedFailure(status=500, message=message, retry=False)
        return Reply(error=failure), self._ids(f"error.{request.number}")

    async def _whole(
        self, exchange: ServedExchange, encoder: ReplyEncoder, reply: Reply, ids: IdSource
    ) -> None:
        body = encode_json(encoder.whole(exchange.request, reply, ids))
        headers = [("content-type", "application/json"), *self._headers(encoder, ids)]
        if reply.cut is None:
            await exchange.answer(200, body, headers)
            return
        await exchange.answer(200, body, headers, sent=len(body) // 2)
        await exchange.end(reply.cut.how)

    async def _stream(
        self, exchange: ServedExchange, encoder: ReplyEncoder, reply: Reply, ids: IdSource
    ) -> None:
        request = exchange.request
        events = encoder.events(request, reply, ids)
        if reply.error is not None:
            begun = islice(events, reply.error.after or 0)
            events = chain(begun, [encoder.error_event(reply.error, ids)])
        headers = [("content-type", encoder.stream_type(request)), ("cache-control", "no-cache")]
        await exchange.open_stream(200, [*headers, *self._headers(encoder, ids)])
        await deliver(encoder.frames(request, events), reply, exchange)

    async def _fail(
        self,
        exchange: ServedExchange,
        encoder: ReplyEncoder,
        failure: ScriptedFailure,
        ids: IdSource,
    ) -> None:
        headers = [*self._headers(encoder, ids), *retry_headers(failure)]
        await exchange.answer_json(failure.status, encoder.error(failure, ids), headers)

    def _headers(self, encoder: ReplyEncoder, ids: IdSource) -> list[tuple[str, str]]:
        return [("date", ids.date()), *encoder.headers(ids)]

    def _ids(self, key: str) -> IdSource:
        return IdSource(self._seed, key)

    def _note(self, request: ReceivedRequest) -> ReceivedRequest:
        with self._arrived:
            noted = replace(request, number=len(self._requests) + 1)
            self._requests.append(noted)
            self._arrived.notify_all()
        return noted


def serve(
    script: ScriptSource | Respond,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    seed: int | None = None,
    ready: Callable[[ScriptedLLM], None] | None = None,
) -> None:
    """Serve until interrupted; `ready` is called when the port is open."""
    with ScriptedLLM(script, seed=seed, host=host, port=port) as llm:
        if ready is not None:
            ready(llm)
        llm.wait()

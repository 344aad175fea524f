"""The scripted LLM: a real server on loopback that says what a script says.

Knows which wire serves which endpoint, and keeps what it was asked. The wires know how
things are said, the selection knows what is said.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from itertools import chain, islice

from playhead.testing.scripted_llm.anthropic_wire import DEFAULT_MODEL as CLAUDE
from playhead.testing.scripted_llm.anthropic_wire import AnthropicWire
from playhead.testing.scripted_llm.catalogue_models import models_answer
from playhead.testing.scripted_llm.deliver import deliver
from playhead.testing.scripted_llm.endpoints import SPOKEN, WireName, endpoint_of
from playhead.testing.scripted_llm.environ import agent_environ, false_keys
from playhead.testing.scripted_llm.gemini_wire import DEFAULT_MODEL as GEMINI
from playhead.testing.scripted_llm.gemini_wire import GeminiWire
from playhead.testing.scripted_llm.llm_script import Failure, Reply
from playhead.testing.scripted_llm.loopback import LoopbackServer
from playhead.testing.scripted_llm.mint import Mint
from playhead.testing.scripted_llm.openai_chat_wire import OpenAIChatWire
from playhead.testing.scripted_llm.openai_errors import DEFAULT_MODEL as GPT
from playhead.testing.scripted_llm.openai_responses_wire import OpenAIResponsesWire
from playhead.testing.scripted_llm.received import Request
from playhead.testing.scripted_llm.responses_socket import ResponsesSocket
from playhead.testing.scripted_llm.script_file import ScriptSource, load_script
from playhead.testing.scripted_llm.selection import (
    CallableSelection,
    Respond,
    ScriptRanOut,
    ScriptSelection,
    Selection,
)
from playhead.testing.scripted_llm.server_http1 import Exchange, encode_json
from playhead.testing.scripted_llm.server_websocket import asks_for_websocket
from playhead.testing.scripted_llm.tokens import prompt_tokens
from playhead.testing.scripted_llm.wire import Wire, retry_headers

Route = Callable[[Exchange], Awaitable[None]]


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
        self._keys = false_keys(self._mint("keys"))
        self._models = [CLAUDE, GPT, GEMINI]
        self._selection: Selection
        if callable(script):
            self._selection = CallableSelection(script)
        else:
            loaded = load_script(script)
            self._selection = ScriptSelection(loaded)
            named = [reply.model for reply in loaded.replies if reply.model]
            self._models = list(dict.fromkeys([*named, *self._models]))
        self._responses = OpenAIResponsesWire()
        self._wires: dict[WireName, Wire] = {
            "anthropic": AnthropicWire(),
            "openai-chat": OpenAIChatWire(),
            "openai-responses": self._responses,
            "gemini": GeminiWire(),
        }
        self._requests: list[Request] = []
        self._arrived = threading.Condition()

    @property
    def requests(self) -> list[Request]:
        """Everything asked so far, in the order of arrival."""
        with self._arrived:
            return list(self._requests)

    def wait_for_requests(self, count: int, timeout: float = 10.0) -> list[Request]:
        """Block until so many requests have come; TimeoutError where they do not."""
        with self._arrived:
            if not self._arrived.wait_for(lambda: len(self._requests) >= count, timeout):
                raise TimeoutError(f"{len(self._requests)} of {count} requests in {timeout} s")
            return list(self._requests)

    def environ(self) -> dict[str, str]:
        """Variables that point the SDKs here, with keys that are false but look real."""
        return {**agent_environ(self.url), **self._keys}

    def stop(self) -> None:
        super().stop()
        self._selection.close()

    async def handle(self, exchange: Exchange) -> None:
        request = exchange.request
        if request.path in self._routes:
            exchange.request = self._note(request)
            await self._routes[request.path](exchange)
            return
        if asks_for_websocket(exchange) and request.path.rstrip("/").endswith("/responses"):
            socket = ResponsesSocket(self._responses, self._ask, self._note, self._mint)
            await socket.serve(exchange)
            return
        verb, wire_name = endpoint_of(request.method, request.path) or (None, None)
        if wire_name is not None:
            await self._serve_wire(exchange, self._wires[wire_name], generate=verb == "generate")
            return
        self._note(request)
        if verb == "hello":
            await exchange.answer_json(200, {"message": "hello"})
            return
        models = models_answer(request, self._models) if verb == "models" else None
        if models is not None:
            await exchange.answer_json(200, models)
            return
        message = f"Nothing is served at {request.method} {request.path}. Served: {SPOKEN}."
        error = {"type": "not_found_error", "message": message, "param": None, "code": None}
        await exchange.answer_json(404, {"type": "error", "error": error})

    async def _serve_wire(self, exchange: Exchange, wire: Wire, *, generate: bool) -> None:
        request = exchange.request
        if not isinstance(request.json, dict):
            self._note(request)
            failure = Failure(status=400, message="The body of the request is not a JSON object.")
            await self._fail(exchange, wire, failure, self._mint("malformed"))
            return
        request = exchange.request = self._note(wire.read(request))
        if not generate:
            total = prompt_tokens(request)
            counted = "totalTokens" if wire.name == "gemini" else "input_tokens"
            await exchange.answer_json(200, {counted: total})
            return
        reply, mint = await self._ask(request)
        if reply.delay:
            await asyncio.sleep(reply.delay)
        if reply.error is not None and (reply.error.after is None or not request.stream):
            await self._fail(exchange, wire, reply.error, mint)
        elif request.stream:
            await self._stream(exchange, wire, reply, mint)
        else:
            await self._whole(exchange, wire, reply, mint)

    async def _ask(self, request: Request) -> tuple[Reply, Mint]:
        """The reply to a request; what goes wrong in finding it is told as the model's error."""
        try:
            chosen = await self._selection.choose(request)
        except ScriptRanOut as error:
            message = str(error)
        except Exception as error:  # noqa: BLE001  it is the user's function; the agent is told
            message = f"The function that answers raised {type(error).__name__}: {error}"
        else:
            return chosen.reply, self._mint(chosen.key)
        failure = Failure(status=500, message=message, retry=False)
        return Reply(error=failure), self._mint(f"error.{request.number}")

    async def _whole(self, exchange: Exchange, wire: Wire, reply: Reply, mint: Mint) -> None:
        body = encode_json(wire.whole(exchange.request, reply, mint))
        headers = [("content-type", "application/json"), *self._headers(wire, mint)]
        if reply.cut is None:
            await exchange.answer(200, body, headers)
            return
        await exchange.answer(200, body, headers, sent=len(body) // 2)
        await exchange.end(reply.cut.how)

    async def _stream(self, exchange: Exchange, wire: Wire, reply: Reply, mint: Mint) -> None:
        request = exchange.request
        events = wire.events(request, reply, mint)
        if reply.error is not None:
            begun = islice(events, reply.error.after or 0)
            events = chain(begun, [wire.error_event(reply.error, mint)])
        headers = [("content-type", wire.stream_type(request)), ("cache-control", "no-cache")]
        await exchange.open_stream(200, [*headers, *self._headers(wire, mint)])
        await deliver(wire.frames(request, events), reply, exchange)

    async def _fail(self, exchange: Exchange, wire: Wire, failure: Failure, mint: Mint) -> None:
        headers = [*self._headers(wire, mint), *retry_headers(failure)]
        await exchange.answer_json(failure.status, wire.error(failure, mint), headers)

    def _headers(self, wire: Wire, mint: Mint) -> list[tuple[str, str]]:
        return [("date", mint.date()), *wire.headers(mint)]

    def _mint(self, key: str) -> Mint:
        return Mint(self._seed, key)

    def _note(self, request: Request) -> Request:
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
    """Serve until interrupted; `ready` is told when the port is open."""
    with ScriptedLLM(script, seed=seed, host=host, port=port) as llm:
        if ready is not None:
            ready(llm)
        llm.wait()

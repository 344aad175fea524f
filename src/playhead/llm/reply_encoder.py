"""The base class of the encoders that write scripted answers, with their ids and token counts. Pure.

One `IdSource` serves one answer, so that a seeded answer does not depend on other concurrent answers.
"""

from __future__ import annotations

import base64
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any, Literal

from playhead import clock
from playhead.llm.llm_script import ReceivedRequest, Reply, Role, ScriptedFailure, ToolCall

_ALNUM = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_BASE58 = _ALNUM.translate(str.maketrans("", "", "0IOl"))
_HEX = "0123456789abcdef"
_KEY = _ALNUM + "-_"
_SEEDED_EPOCH = 1_767_225_600


class IdSource:
    """Generates ids for one answer; `key` distinguishes the answers of one seed."""

    def __init__(self, seed: int | None, key: str) -> None:
        self._root = clock.urandom(32) if seed is None else f"{seed}/{key}/".encode()
        self._minted = 0
        # Used twice in one answer: in a header, and in the body of an error.
        self.request_token = self.base58(20)
        if seed is None:
            self.now = clock.wall_ns() // 1_000_000_000
        else:
            self.now = _SEEDED_EPOCH + int.from_bytes(self._bytes(2), "big")

    def base58(self, length: int) -> str:
        return self._letters(_BASE58, length)

    def alnum(self, length: int) -> str:
        return self._letters(_ALNUM, length)

    def hex(self, length: int) -> str:
        return self._letters(_HEX, length)

    def secret(self, length: int) -> str:
        return self._letters(_KEY, length)

    def opaque(self, length: int) -> str:
        """Return base64 of random bytes, for signatures and encrypted content."""
        return base64.b64encode(self._bytes(length)).decode()

    def date(self) -> str:
        return formatdate(self.now, usegmt=True)

    def _letters(self, alphabet: str, length: int) -> str:
        return "".join(alphabet[byte % len(alphabet)] for byte in self._bytes(length))

    def _bytes(self, length: int) -> bytes:
        self._minted += 1
        return hashlib.shake_256(self._root + b"%d" % self._minted).digest(length)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Tokens of one answer. `prompt` is the sum of all input, cached or not."""

    input: int
    output: int
    cache_read: int
    cache_write: int
    reasoning: int

    @property
    def prompt(self) -> int:
        return self.input + self.cache_read + self.cache_write

    @property
    def total(self) -> int:
        return self.prompt + self.output


def count(request: ReceivedRequest, reply: Reply) -> Counts:
    usage = reply.usage
    reasoning = usage.reasoning
    if reasoning is None:
        reasoning = estimate(reply.thinking)
    output = usage.output
    if output is None:
        said = [
            reply.text,
            *(call.name + arguments_text(call.arguments) for call in reply.tool_calls),
        ]
        output = reasoning + max(1, sum(map(estimate, said)))
    fresh = usage.input
    if fresh is None:
        fresh = max(1, prompt_tokens(request) - usage.cache_read - usage.cache_write)
    return Counts(
        input=fresh,
        output=output,
        cache_read=usage.cache_read,
        cache_write=usage.cache_write,
        reasoning=min(reasoning, output),
    )


def prompt_tokens(request: ReceivedRequest) -> int:
    """Estimate the tokens of a request: its texts and its tool descriptions."""
    tools = request.json.get("tools") if isinstance(request.json, dict) else None
    described = estimate(json.dumps(tools)) if tools else 0
    return described + sum(3 + estimate(message.text) for message in request.messages)


def estimate(text: str) -> int:
    """Estimate four bytes per token: accurate to a fifth for English and code."""
    return (len(text.encode(errors="replace")) + 3) // 4


def arguments_text(arguments: object) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


Json = Mapping[str, Any]
Endpoint = Literal["generate", "count"]

# 2026-01-01: the creation date of each model in the lists of models.
LISTED_AT = 1_767_225_600

ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "assistant": "assistant",
    "model": "assistant",
}
_NESTED_KEYS = ("text", "thinking", "name", "content", "output", "summary", "function")
_GEMINI_KEYS = ("functionCall", "functionResponse")
_DATA_KEYS = ("input", "arguments", "args", "response")


class ReplyEncoder(ABC):
    """Writes the replies of a script in the form of one API. One instance serves one server."""

    # The value of `ReceivedRequest.wire` for requests to this API.
    name = ""
    default_model = ""
    # The addresses that this encoder serves, for the message about an unknown one.
    serves: tuple[str, ...] = ()
    # The variable that holds the API key; "": none.
    key_variable = ""

    @abstractmethod
    def endpoint(self, path: str) -> Endpoint | None:
        """Return the purpose of a POST to this path; None: the path does not belong to this API."""

    @abstractmethod
    def read(self, request: ReceivedRequest) -> ReceivedRequest:
        """Return the request with wire, model, stream and messages filled in."""

    @abstractmethod
    def whole(self, request: ReceivedRequest, reply: Reply, ids: IdSource) -> Json:
        """Return the reply as one JSON body."""

    @abstractmethod
    def events(self, request: ReceivedRequest, reply: Reply, ids: IdSource) -> Iterator[Json | str]:
        """Yield the reply as the objects of a stream."""

    @abstractmethod
    def error(self, failure: ScriptedFailure, ids: IdSource) -> Json:
        """Return the body of an error answer."""

    def error_event(self, failure: ScriptedFailure, ids: IdSource) -> Json:
        """Return the error as an object in the middle of a stream."""
        return self.error(failure, ids)

    def frames(self, _request: ReceivedRequest, events: Iterable[Json | str]) -> Iterator[bytes]:
        """Encode the objects of a stream for HTTP, one frame per socket write."""
        return map(sse, events)

    def stream_type(self, _request: ReceivedRequest) -> str:
        """Return the content type of a stream."""
        return "text/event-stream; charset=utf-8"

    def headers(self, _ids: IdSource) -> list[tuple[str, str]]:
        """Return the headers that the provider adds to each answer."""
        return []

    def token_count(self, total: int) -> Json:
        """Return the answer to a request that only counts tokens."""
        return {"input_tokens": total}

    def environ(self, _url: str) -> dict[str, str]:
        """Return the variables that point SDKs of this API at a server."""
        return {}

    def fake_key(self, _ids: IdSource) -> str:
        """Return a key in the provider's form that gives no access, so that redaction has something to redact."""
        return ""

    def lists_models(self, _request: ReceivedRequest) -> bool:
        """Return whether a request for the list of models comes from a client of this API."""
        return False

    def model_entry(self, name: str) -> dict[str, Any]:
        """Return one model as the list has it."""
        return {"id": name, "object": "model", "created": LISTED_AT, "owned_by": "playhead"}

    def model_list(self, entries: list[Json]) -> Json:
        return {"object": "list", "data": entries}


def arguments_object(call: ToolCall) -> Json:
    """Return the arguments for an API that carries them as an object."""
    if isinstance(call.arguments, Mapping):
        return call.arguments
    try:
        value = json.loads(call.arguments)
    except ValueError as error:
        raise ValueError(
            f"The arguments of tool call {call.name!r} are not JSON, and this API carries them "
            f"as an object: {error}. Only streams of Anthropic and OpenAI can carry them."
        ) from error
    if not isinstance(value, Mapping):
        raise TypeError(f"The arguments of tool call {call.name!r} are not a JSON object.")
    return value


def text_of(content: Any) -> str:
    """Return all text in a message, tool calls and results included, under the field names of every API."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text for text in map(text_of, content) if text)
    if not isinstance(content, Mapping):
        return ""
    found = [text_of(content[key]) for key in (*_NESTED_KEYS, *_GEMINI_KEYS) if key in content]
    for key in _DATA_KEYS:
        if key in content:
            value = content[key]
            # A result has its text under some name; arguments are shown as JSON.
            text = text_of(value) if key == "response" or isinstance(value, str) else ""
            found.append(text or json.dumps(value, ensure_ascii=False))
    return "\n".join(text for text in found if text)


def retry_headers(failure: ScriptedFailure) -> list[tuple[str, str]]:
    """Return the headers of an error answer that control retries.

    Providers send whole seconds; SDKs also read fractions, which keeps tests short.
    """
    headers = [] if failure.retry else [("x-should-retry", "false")]
    wait = failure.retry_after
    if wait is None:
        return headers
    if wait == int(wait):
        return [*headers, ("retry-after", str(int(wait)))]
    milliseconds = str(round(wait * 1000))
    return [*headers, ("retry-after", str(wait)), ("retry-after-ms", milliseconds)]


def sse(data: Json | str, event: str | None = None) -> bytes:
    body = data if isinstance(data, str) else encode(data)
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {body}\n\n".encode()


def encode(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

"""The base class of reply encoders, which write a scripted reply in the form of one API, and what they share.

Knows JSON and server-sent events; does not know sockets.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from playhead.llm.scripting.id_source import IdSource
from playhead.llm.scripting.llm_script import Reply, ScriptedFailure, ToolCall
from playhead.llm.scripting.received_request import ReceivedRequest, Role

Json = Mapping[str, Any]
Endpoint = Literal["generate", "count"]

# 2026-01-01: when each model was made, in the lists of models.
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
        """Return a key of the provider's form that opens nothing, so that redaction has work to do."""
        return ""

    def lists_models(self, _request: ReceivedRequest) -> bool:
        """Whether a request for the list of models comes from a client of this API."""
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

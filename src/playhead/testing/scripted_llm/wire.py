"""What every wire protocol can do, and the few things that all do alike. Knows no socket."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from playhead.testing.scripted_llm.llm_script import Failure, Reply, ToolCall
from playhead.testing.scripted_llm.mint import Mint
from playhead.testing.scripted_llm.received import Request, Role

Json = Mapping[str, Any]

ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "assistant": "assistant",
    "model": "assistant",
}
_NESTED_KEYS = ("text", "thinking", "name", "content", "output", "summary", "function")
_GEMINI_KEYS = ("functionCall", "functionResponse")
_DATA_KEYS = ("input", "arguments", "args", "response")


class Wire(Protocol):
    """One provider's protocol: how a request reads, and how a reply is said."""

    name: str

    def read(self, request: Request, /) -> Request:
        """The request with wire, model, stream and messages filled in."""

    def whole(self, request: Request, reply: Reply, mint: Mint, /) -> Json:
        """The reply as one JSON body."""

    def events(self, request: Request, reply: Reply, mint: Mint, /) -> Iterator[Json | str]:
        """The reply as the objects of a stream."""

    def frames(self, request: Request, events: Iterable[Json | str], /) -> Iterator[bytes]:
        """The objects of a stream as they go over HTTP, one frame a socket write."""

    def stream_type(self, request: Request, /) -> str:
        """The content type of a stream."""

    def headers(self, mint: Mint, /) -> list[tuple[str, str]]:
        """What the provider adds to each answer."""

    def error(self, failure: Failure, mint: Mint, /) -> Json:
        """The body of an error answer."""

    def error_event(self, failure: Failure, mint: Mint, /) -> Json:
        """The same in the middle of a stream."""


def arguments_object(call: ToolCall) -> Json:
    """Arguments for a wire that carries them as an object."""
    if isinstance(call.arguments, Mapping):
        return call.arguments
    try:
        value = json.loads(call.arguments)
    except ValueError as error:
        raise ValueError(
            f"The arguments of tool call {call.name!r} are not JSON, and this wire carries them "
            f"as an object: {error}. Only streams of Anthropic and OpenAI can say them."
        ) from error
    if not isinstance(value, Mapping):
        raise TypeError(f"The arguments of tool call {call.name!r} are not a JSON object.")
    return value


def text_of(content: Any) -> str:
    """All the text in a message, tool calls and results included, whatever the wire calls it."""
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
            # A result has its text under some name; arguments are told as they are.
            said = text_of(value) if key == "response" or isinstance(value, str) else ""
            found.append(said or json.dumps(value, ensure_ascii=False))
    return "\n".join(text for text in found if text)


def retry_headers(failure: Failure) -> list[tuple[str, str]]:
    """Providers say whole seconds; SDKs read fractions too, which keeps tests short."""
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

"""LLM exchanges decoded from the wire, whatever SDK made them.

The facade over one module a protocol. Everything here is a pure function over bytes that
nobody vouches for, runs inside the agent's own process with the standard library alone, and
never raises: what cannot be read comes back with ``complete=False`` and the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, TypeVar

from playhead.llm import anthropic, gemini, openai_chat, openai_responses
from playhead.llm.exchange import (
    Image,
    LlmError,
    LlmExchange,
    LlmMessage,
    LlmRequest,
    LlmResponse,
    LlmTool,
    Other,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Usage,
)
from playhead.llm.failure import error_of_text
from playhead.llm.http.content_encoding import undo
from playhead.llm.http.headers import Headers, content_type_of, header, retry_after_of
from playhead.llm.openai_websocket import decode_websocket
from playhead.llm.recognise import api_of, model_in, stream_in
from playhead.llm.summary import summary

__all__ = [
    "APIS",
    "Headers",
    "Image",
    "LlmError",
    "LlmExchange",
    "LlmMessage",
    "LlmRequest",
    "LlmResponse",
    "LlmTool",
    "Other",
    "Part",
    "Refusal",
    "Text",
    "Thinking",
    "ToolResult",
    "ToolUse",
    "Usage",
    "api_of",
    "decode_request",
    "decode_response",
    "decode_websocket",
    "summary",
    "tool_calls_of",
]


class _Decoder(Protocol):
    """What each protocol's module offers."""

    @property
    def API(self) -> str: ...  # noqa: N802 - a constant of the module
    @property
    def TOOL_WORDS(self) -> tuple[bytes, ...]: ...  # noqa: N802 - as above

    def decode_request(self, body: bytes) -> LlmRequest: ...

    def decode_response(
        self, status: int, content_type: str, body: bytes, *, only: tuple[bytes, ...] = ...
    ) -> LlmResponse: ...


_MODULES: tuple[_Decoder, ...] = (anthropic, openai_chat, openai_responses, gemini)
_PROTOCOLS = {module.API: module for module in _MODULES}
APIS = tuple(_PROTOCOLS)

T = TypeVar("T", LlmRequest, LlmResponse)


def decode_request(
    api: str, body: bytes, *, url: str | None = None, headers: Headers = None
) -> LlmRequest:
    """What was asked. With ``url``: the model and streaming where the address says them."""
    plain = undo(header(headers, "content-encoding"), body)
    protocol = _PROTOCOLS.get(api)
    if plain.reason is not None or protocol is None:
        reason = plain.reason or f"unknown API {api!r}"
        return LlmRequest(api=api, model=None, complete=False, reason=reason)
    request = _guarded(
        lambda: protocol.decode_request(plain.body),
        lambda reason: LlmRequest(api=api, model=None, complete=False, reason=reason),
    )
    if url is None:
        return request
    stream = stream_in(url)
    return replace(
        request,
        model=request.model or model_in(url),
        stream=request.stream if stream is None else stream,
    )


def decode_response(api: str, status: int, headers: Headers, body: bytes) -> LlmResponse:
    """What was answered, as far as it arrived."""
    return _decode(api, status, headers, body, only=())


def tool_calls_of(api: str, status: int, headers: Headers, body: bytes) -> tuple[ToolUse, ...]:
    """The whole tool calls that an answer asks the agent to make.

    Cheap where there are none, and skips the events of a stream that cannot tell of any.
    """
    protocol = _PROTOCOLS.get(api)
    if protocol is None:
        return ()
    words = protocol.TOOL_WORDS
    plain = undo(header(headers, "content-encoding"), body)
    binary = content_type_of(headers) == "application/vnd.amazon.eventstream"
    if not binary and not any(word in plain.body for word in words):
        return ()
    bare = {"content-type": content_type_of(headers)}
    response = _decode(api, status, bare, plain.body, only=words)
    return tuple(call for call in response.tool_calls if call.complete)


def _decode(
    api: str, status: int, headers: Headers, body: bytes, *, only: tuple[bytes, ...]
) -> LlmResponse:
    plain = undo(header(headers, "content-encoding"), body)
    protocol = _PROTOCOLS.get(api)
    if plain.reason is not None or protocol is None:
        reason = plain.reason or f"unknown API {api!r}"
        return LlmResponse(
            api=api,
            status=status,
            error=LlmError(status=status, type="undecodable", message=reason),
            complete=False,
            reason=reason,
        )
    response = _guarded(
        lambda: protocol.decode_response(status, content_type_of(headers), plain.body, only=only),
        lambda reason: LlmResponse(api=api, status=status, complete=False, reason=reason),
    )
    error = response.error
    if error is None and status >= 400:
        error = error_of_text(plain.body[:4096].decode("utf-8", "replace"), status)
    if error is not None and error.retry_after is None:
        error = replace(error, retry_after=retry_after_of(headers))
    return response if error is response.error else replace(response, error=error)


def _guarded(decode: Callable[[], T], give_up: Callable[[str], T]) -> T:
    """Decode a stranger's bytes inside somebody else's process: nothing may escape."""
    try:
        return decode()
    except RecursionError:
        return give_up("the JSON is nested too deeply")
    except Exception as error:  # noqa: BLE001 - see above; the reason is kept, not hidden
        return give_up(f"cannot be decoded: {type(error).__name__}: {error}")

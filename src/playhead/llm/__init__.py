"""Decode LLM exchanges from HTTP bodies and WebSocket messages, whichever SDK sent them.

The facade over the providers (see `provider` and `providers`). The functions are pure, run inside the
agent's process with the standard library alone, and never raise: the bytes are untrusted, and what cannot
be decoded is returned with ``complete=False`` and the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from playhead.llm.decoding import error_of_text
from playhead.llm.http_headers import Headers, content_type_of, header, retry_after_of, undo
from playhead.llm.llm_exchange import (
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
    summary,
)
from playhead.llm.providers import api_of, model_in, provider_of, stream_in

__all__ = [
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


T = TypeVar("T", LlmRequest, LlmResponse)


def decode_request(
    api: str, body: bytes, *, url: str | None = None, headers: Headers = None
) -> LlmRequest:
    """Decode a request. With ``url``: also the model and streaming, where the address has them."""
    plain = undo(header(headers, "content-encoding"), body)
    provider = provider_of(api)
    if plain.reason is not None or provider is None:
        reason = plain.reason or f"unknown API {api!r}"
        return LlmRequest(api=api, model=None, complete=False, reason=reason)
    request = _guarded(
        lambda: provider.decode_request(plain.body),
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
    """Decode a response, as far as it arrived."""
    return _decode(api, status, headers, body, only=())


def tool_calls_of(api: str, status: int, headers: Headers, body: bytes) -> tuple[ToolUse, ...]:
    """Return the complete tool calls that a response asks the agent to make.

    Cheap for a response without any; skips the events of a stream that cannot hold one.
    """
    provider = provider_of(api)
    if provider is None:
        return ()
    words = provider.tool_words
    plain = undo(header(headers, "content-encoding"), body)
    binary = content_type_of(headers) == "application/vnd.amazon.eventstream"
    if not binary and not any(word in plain.body for word in words):
        return ()
    bare = {"content-type": content_type_of(headers)}
    response = _decode(api, status, bare, plain.body, only=words)
    return tuple(call for call in response.tool_calls if call.complete)


def decode_websocket(
    api: str, messages: Iterable[tuple[str, bytes | str]]
) -> tuple[LlmExchange, ...]:
    """Decode the exchanges on one socket from ("sent" | "received", message) pairs, in order."""
    provider = provider_of(api)
    return () if provider is None else provider.decode_websocket(messages)


def _decode(
    api: str, status: int, headers: Headers, body: bytes, *, only: tuple[bytes, ...]
) -> LlmResponse:
    plain = undo(header(headers, "content-encoding"), body)
    provider = provider_of(api)
    if plain.reason is not None or provider is None:
        reason = plain.reason or f"unknown API {api!r}"
        return LlmResponse(
            api=api,
            status=status,
            error=LlmError(status=status, type="undecodable", message=reason),
            complete=False,
            reason=reason,
        )
    response = _guarded(
        lambda: provider.decode_response(status, content_type_of(headers), plain.body, only=only),
        lambda reason: LlmResponse(api=api, status=status, complete=False, reason=reason),
    )
    error = response.error
    if error is None and status >= 400:
        error = error_of_text(plain.body[:4096].decode("utf-8", "replace"), status)
    if error is not None and error.retry_after is None:
        error = replace(error, retry_after=retry_after_of(headers))
    return response if error is response.error else replace(response, error=error)


def _guarded(decode: Callable[[], T], give_up: Callable[[str], T]) -> T:
    """Decode untrusted bytes inside the agent's process: no exception may escape."""
    try:
        return decode()
    except RecursionError:
        return give_up("the JSON is nested too deeply")
    except Exception as error:  # noqa: BLE001 - see above; the reason is kept, not hidden
        return give_up(f"cannot be decoded: {type(error).__name__}: {error}")

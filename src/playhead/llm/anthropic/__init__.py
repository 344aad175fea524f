"""Anthropic's Messages API, as served by Anthropic, Vertex, Bedrock and compatible servers.

The provider itself: recognition, rewriting, error answers. `decode_anthropic` reads bodies and streams,
`encode_anthropic` writes them for the scripted server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from playhead.host.later import Later
from playhead.llm.anthropic import decode_anthropic
from playhead.llm.http_headers import Headers
from playhead.llm.llm_exchange import LlmRequest, LlmResponse
from playhead.llm.provider import (
    Json,
    Provider,
    has_header,
    has_keys,
    replace_first_text,
    text_or_empty,
)

if TYPE_CHECKING:
    from playhead.llm.anthropic import encode_anthropic
    from playhead.llm.reply_encoder import ReplyEncoder
else:
    encode_anthropic = Later("playhead.llm.anthropic.encode_anthropic")

_ERRORS = {
    400: ("invalid_request_error", "The request was malformed."),
    401: ("authentication_error", "invalid x-api-key"),
    403: ("permission_error", "Your API key may not use this resource."),
    404: ("not_found_error", "The requested resource was not found."),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "This request would exceed your organization's rate limit."),
    500: ("api_error", "Internal server error"),
    504: ("timeout_error", "The request timed out."),
    529: ("overloaded_error", "Overloaded"),
}


class AnthropicMessages(Provider):
    """`POST …/v1/messages`, Vertex's `:rawPredict` and Bedrock's `/invoke`."""

    api = decode_anthropic.API
    price_id = "anthropic"
    endpoints = {  # noqa: RUF012  read only
        "messages": None,
        "rawPredict": False,
        "streamRawPredict": True,
        "invoke": False,
        "invoke-with-response-stream": True,
    }
    tool_words = decode_anthropic.TOOL_WORDS

    def matches(self, path: str, headers: Headers, body: bytes | None) -> bool:
        tail = path[path.rfind("/") + 1 :]
        if tail == "messages":
            has_version = has_header(headers, "anthropic-version")
            if body is None:
                return path.endswith("/v1/messages") and has_version
            known = path.endswith("/v1/messages") or has_version
            return known and has_keys(body, b'"messages"', b'"model"')
        if tail.startswith("count-tokens"):
            return False
        if body is None:
            return "anthropic" in path or "claude" in path
        # Bedrock and Vertex serve other vendors' models at the same addresses.
        return has_keys(body, b'"anthropic_version"', b'"messages"')

    def decode_request(self, body: bytes) -> LlmRequest:
        return decode_anthropic.decode_request(body)

    def decode_response(
        self, status: int, content_type: str, body: bytes, *, only: Iterable[bytes] = ()
    ) -> LlmResponse:
        return decode_anthropic.decode_response(status, content_type, body, only=tuple(only))

    def streamed_text(self, event: Json) -> Iterator[tuple[str, bool]]:
        delta = event.get("delta")
        if event.get("type") == "content_block_delta" and isinstance(delta, dict):
            yield text_or_empty(delta.get("text")), False
            yield text_or_empty(delta.get("thinking")), True

    def starts_turn(self, message: Json) -> bool:
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        is_result = any(
            isinstance(one, dict) and one.get("type") == "tool_result" for one in blocks
        )
        return message.get("role") == "user" and not is_result

    def replace_text(self, body: Json, text: str) -> Json:
        block = {"type": "text", "text": text}
        content = replace_first_text(
            body.get("content") or [], lambda one: one.get("type") == "text", block
        )
        return {**body, "content": content}

    def replace_event_text(self, event: Json, text: str, *, done: bool) -> tuple[Json, bool] | None:
        delta = event.get("delta") or {}
        if event.get("type") != "content_block_delta" or delta.get("type") != "text_delta":
            return event, False
        return None if done else ({**event, "delta": {**delta, "text": text}}, True)

    def error_body(
        self,
        status: int,
        message: str | None = None,
        *,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> Json:
        kind, usual = _ERRORS.get(status, _ERRORS[500])
        body: Json = {"type": "error", "error": {"type": kind, "message": message or usual}}
        # Errors inside a stream have no id: the answer's own header has it.
        return body if request_id is None else {**body, "request_id": request_id}

    def reply_encoder(self) -> ReplyEncoder:
        return encode_anthropic.AnthropicEncoder()

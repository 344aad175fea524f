"""Anthropic Messages: read requests, say replies, plain and streamed. Knows no socket."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from playhead.testing.scripted_llm.llm_script import (
    Failure,
    Reply,
    ToolCall,
    pieces,
    stop_reason_of,
)
from playhead.testing.scripted_llm.mint import Mint
from playhead.testing.scripted_llm.received import Request, Role, joined
from playhead.testing.scripted_llm.tokens import Counts, arguments_text, count
from playhead.testing.scripted_llm.wire import ROLES, Json, arguments_object, sse, text_of

DEFAULT_MODEL = "claude-sonnet-5-5"
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


class AnthropicWire:
    """`POST …/messages`."""

    name = "anthropic"

    def read(self, request: Request) -> Request:
        body = request.json
        spoken: list[tuple[Role, str]] = [("system", text_of(body.get("system")))]
        for message in body.get("messages") or []:
            role = ROLES.get(message.get("role"), "user")
            spoken.append((role, text_of(message.get("content"))))
        return replace(
            request,
            wire=self.name,
            model=body.get("model"),
            stream=bool(body.get("stream")),
            messages=joined([said for said in spoken if said != ("system", "")]),
        )

    def whole(self, request: Request, reply: Reply, mint: Mint) -> Json:
        content: list[Json] = []
        if reply.thinking:
            signature = mint.opaque(240)
            content.append({"type": "thinking", "thinking": reply.thinking, "signature": signature})
        if reply.text:
            content.append({"type": "text", "text": reply.text})
        content += [
            {**_tool_use(call, mint), "input": arguments_object(call)} for call in reply.tool_calls
        ]
        counts = count(request, reply)
        usage = {**_usage(counts), **_output(counts)}
        message = _message(request, reply, mint, usage)
        return {**message, "content": content, "stop_reason": stop_reason_of(reply)}

    def events(self, request: Request, reply: Reply, mint: Mint) -> Iterator[Json]:
        counts = count(request, reply)
        start = _message(request, reply, mint, {**_usage(counts), "output_tokens": 1})
        yield {"type": "message_start", "message": start}
        for index, (block, deltas) in enumerate(_blocks(reply, mint)):
            yield {"type": "content_block_start", "index": index, "content_block": block}
            if index == 0:
                yield {"type": "ping"}
            for delta in deltas:
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        yield {
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason_of(reply), "stop_sequence": None},
            "usage": {
                "input_tokens": counts.input,
                "cache_creation_input_tokens": counts.cache_write,
                "cache_read_input_tokens": counts.cache_read,
                **_output(counts),
            },
        }
        yield {"type": "message_stop"}

    def frames(self, _request: Request, events: Iterable[Json | str]) -> Iterator[bytes]:
        for event in events:
            yield sse(event, None if isinstance(event, str) else event["type"])

    def stream_type(self, _request: Request) -> str:
        return "text/event-stream; charset=utf-8"

    def headers(self, mint: Mint) -> list[tuple[str, str]]:
        return [
            ("request-id", _request_id(mint)),
            ("anthropic-organization-id", _uuid(mint)),
            ("anthropic-ratelimit-requests-limit", "4000"),
            ("anthropic-ratelimit-requests-remaining", "3999"),
        ]

    def error(self, failure: Failure, mint: Mint) -> Json:
        return {**self.error_event(failure, mint), "request_id": _request_id(mint)}

    def error_event(self, failure: Failure, _mint: Mint) -> Json:
        kind, message = _ERRORS.get(failure.status, _ERRORS[500])
        return {"type": "error", "error": {"type": kind, "message": failure.message or message}}


def _message(request: Request, reply: Reply, mint: Mint, usage: Json) -> dict[str, Any]:
    return {
        "model": reply.model or request.model or DEFAULT_MODEL,
        "id": f"msg_01{mint.base58(22)}",
        "type": "message",
        "role": "assistant",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }


def _blocks(reply: Reply, mint: Mint) -> Iterator[tuple[Json, list[Json]]]:
    """Each content block as it starts, with the deltas that fill it."""
    if reply.thinking:
        deltas: list[Json] = [
            {"type": "thinking_delta", "thinking": part}
            for part in pieces(reply.thinking, reply.chunks)
        ]
        deltas.append({"type": "signature_delta", "signature": mint.opaque(240)})
        yield {"type": "thinking", "thinking": "", "signature": ""}, deltas
    if reply.text:
        parts = pieces(reply.text, reply.chunks)
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": p} for p in parts]
    for call in reply.tool_calls:
        # The API begins each tool call with an empty delta; SDKs must cope with it.
        parts = ["", *pieces(arguments_text(call.arguments), reply.chunks)]
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
        yield {**_tool_use(call, mint), "input": {}}, deltas


def _tool_use(call: ToolCall, mint: Mint) -> Json:
    return {"type": "tool_use", "id": call.id or f"toolu_01{mint.base58(22)}", "name": call.name}


def _usage(counts: Counts) -> Json:
    return {
        "input_tokens": counts.input,
        "cache_creation_input_tokens": counts.cache_write,
        "cache_read_input_tokens": counts.cache_read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": counts.cache_write,
            "ephemeral_1h_input_tokens": 0,
        },
        "service_tier": "standard",
    }


def _output(counts: Counts) -> Json:
    details = {"output_tokens_details": {"thinking_tokens": counts.reasoning}}
    return {"output_tokens": counts.output, **(details if counts.reasoning else {})}


def _request_id(mint: Mint) -> str:
    return f"req_011C{mint.request_token}"


def _uuid(mint: Mint) -> str:
    return "-".join(mint.hex(length) for length in (8, 4, 4, 4, 12))

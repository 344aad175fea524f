"""Read requests to Anthropic's Messages API and write scripted replies, whole and streamed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from playhead.llm.anthropic import AnthropicMessages
from playhead.llm.llm_script import (
    ReceivedRequest,
    Reply,
    Role,
    ScriptedFailure,
    ToolCall,
    joined,
    pieces,
    stop_reason_of,
)
from playhead.llm.reply_encoder import (
    ROLES,
    Counts,
    Endpoint,
    IdSource,
    Json,
    ReplyEncoder,
    arguments_object,
    arguments_text,
    count,
    sse,
    text_of,
)

_LISTED_ON = "2026-01-01T00:00:00Z"


class AnthropicEncoder(ReplyEncoder):
    """`POST …/messages`."""

    name = "anthropic"
    default_model = "claude-sonnet-5-5"
    serves = ("POST …/messages", "POST …/messages/count_tokens")
    key_variable = "ANTHROPIC_API_KEY"

    def endpoint(self, path: str) -> Endpoint | None:
        if path.endswith("/messages/count_tokens"):
            return "count"
        return "generate" if path.endswith("/messages") else None

    def environ(self, url: str) -> dict[str, str]:
        return {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_BASE": url,
            # Claude Code downloads files at its start; this avoids it, because a scripted agent needs no network.
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }

    def fake_key(self, ids: IdSource) -> str:
        return f"sk-ant-api03-{ids.secret(93)}AA"

    def lists_models(self, request: ReceivedRequest) -> bool:
        return "anthropic-version" in request.headers

    def model_entry(self, name: str) -> dict[str, Any]:
        return {"type": "model", "id": name, "display_name": name, "created_at": _LISTED_ON}

    def model_list(self, entries: list[Json]) -> Json:
        ends = {"first_id": entries[0]["id"], "last_id": entries[-1]["id"]} if entries else {}
        return {"data": entries, "has_more": False, **ends}

    def read(self, request: ReceivedRequest) -> ReceivedRequest:
        body = request.json
        texts: list[tuple[Role, str]] = [("system", text_of(body.get("system")))]
        for message in body.get("messages") or []:
            role = ROLES.get(message.get("role"), "user")
            texts.append((role, text_of(message.get("content"))))
        return replace(
            request,
            wire=self.name,
            model=body.get("model"),
            stream=bool(body.get("stream")),
            messages=joined([one for one in texts if one != ("system", "")]),
        )

    def whole(self, request: ReceivedRequest, reply: Reply, ids: IdSource) -> Json:
        content: list[Json] = []
        if reply.thinking:
            signature = ids.opaque(240)
            content.append({"type": "thinking", "thinking": reply.thinking, "signature": signature})
        if reply.text:
            content.append({"type": "text", "text": reply.text})
        content += [
            {**_tool_use(call, ids), "input": arguments_object(call)} for call in reply.tool_calls
        ]
        counts = count(request, reply)
        usage = {**_usage(counts), **_output(counts)}
        message = _message(request, reply, ids, usage)
        return {**message, "content": content, "stop_reason": stop_reason_of(reply)}

    def events(self, request: ReceivedRequest, reply: Reply, ids: IdSource) -> Iterator[Json]:
        counts = count(request, reply)
        start = _message(request, reply, ids, {**_usage(counts), "output_tokens": 1})
        yield {"type": "message_start", "message": start}
        for index, (block, deltas) in enumerate(_blocks(reply, ids)):
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

    def frames(self, _request: ReceivedRequest, events: Iterable[Json | str]) -> Iterator[bytes]:
        for event in events:
            yield sse(event, None if isinstance(event, str) else event["type"])

    def headers(self, ids: IdSource) -> list[tuple[str, str]]:
        return [
            ("request-id", _request_id(ids)),
            ("anthropic-organization-id", _uuid(ids)),
            ("anthropic-ratelimit-requests-limit", "4000"),
            ("anthropic-ratelimit-requests-remaining", "3999"),
        ]

    def error(self, failure: ScriptedFailure, ids: IdSource) -> Json:
        request_id = _request_id(ids)
        return _PROVIDER.error_body(failure.status, failure.message, request_id=request_id)

    def error_event(self, failure: ScriptedFailure, _ids: IdSource) -> Json:
        return _PROVIDER.error_body(failure.status, failure.message)


_PROVIDER = AnthropicMessages()


def _message(request: ReceivedRequest, reply: Reply, ids: IdSource, usage: Json) -> dict[str, Any]:
    return {
        "model": reply.model or request.model or AnthropicEncoder.default_model,
        "id": f"msg_01{ids.base58(22)}",
        "type": "message",
        "role": "assistant",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }


def _blocks(reply: Reply, ids: IdSource) -> Iterator[tuple[Json, list[Json]]]:
    """Yield each content block as it starts, with the deltas that fill it."""
    if reply.thinking:
        deltas: list[Json] = [
            {"type": "thinking_delta", "thinking": part}
            for part in pieces(reply.thinking, reply.chunks)
        ]
        deltas.append({"type": "signature_delta", "signature": ids.opaque(240)})
        yield {"type": "thinking", "thinking": "", "signature": ""}, deltas
    if reply.text:
        parts = pieces(reply.text, reply.chunks)
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": p} for p in parts]
    for call in reply.tool_calls:
        # The API begins each tool call with an empty delta; SDKs must cope with it.
        parts = ["", *pieces(arguments_text(call.arguments), reply.chunks)]
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
        yield {**_tool_use(call, ids), "input": {}}, deltas


def _tool_use(call: ToolCall, ids: IdSource) -> Json:
    return {"type": "tool_use", "id": call.id or f"toolu_01{ids.base58(22)}", "name": call.name}


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


def _request_id(ids: IdSource) -> str:
    return f"req_011C{ids.request_token}"


def _uuid(ids: IdSource) -> str:
    return "-".join(ids.hex(length) for length in (8, 4, 4, 4, 12))

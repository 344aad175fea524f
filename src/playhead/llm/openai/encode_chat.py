"""Read requests to OpenAI's Chat Completions and write scripted replies, whole and streamed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from playhead.llm.llm_script import ReceivedRequest, Reply, Role, joined, pieces, stop_reason_of
from playhead.llm.openai.encode_items import OpenAiEncoder
from playhead.llm.reply_encoder import (
    ROLES,
    Endpoint,
    IdSource,
    Json,
    arguments_text,
    count,
    text_of,
)

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


class OpenAiChatEncoder(OpenAiEncoder):
    """`POST …/chat/completions`."""

    name = "openai-chat"
    serves = ("POST …/chat/completions",)

    def endpoint(self, path: str) -> Endpoint | None:
        return "generate" if path.endswith("/chat/completions") else None

    def read(self, request: ReceivedRequest) -> ReceivedRequest:
        texts_by_role: list[tuple[Role, str]] = []
        for message in request.json.get("messages") or []:
            texts = [text_of(message.get("content")), text_of(message.get("tool_calls"))]
            role = ROLES.get(message.get("role"), "user")
            texts_by_role.append((role, "\n".join(text for text in texts if text)))
        return replace(
            request,
            wire=self.name,
            model=request.json.get("model"),
            stream=bool(request.json.get("stream")),
            messages=joined(texts_by_role),
        )

    def whole(self, request: ReceivedRequest, reply: Reply, ids: IdSource) -> Json:
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
        # OpenAI does not send reasoning here; compatible servers use this field.
        if reply.thinking:
            message["reasoning_content"] = reply.thinking
        if reply.tool_calls:
            message["tool_calls"] = [call for call, _ in _tool_calls(reply, ids)]
        message |= {"refusal": None, "annotations": []}
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": _FINISH[stop_reason_of(reply)],
        }
        frame = _frame(request, reply, ids, "chat.completion")
        return {**frame, "choices": [choice], "usage": _usage(request, reply)}

    def events(self, request: ReceivedRequest, reply: Reply, ids: IdSource) -> Iterator[Json | str]:
        counted = bool((request.json.get("stream_options") or {}).get("include_usage"))
        frame = _frame(request, reply, ids, "chat.completion.chunk")
        # With include_usage, every chunk has the key, and only the last has the numbers.
        tail: Json = {"usage": None} if counted else {}

        def chunk(delta: Json, finish: str | None = None) -> Json:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            return {**frame, "choices": [choice], **tail}

        yield chunk({"role": "assistant", "content": "", "refusal": None})
        for part in pieces(reply.thinking, reply.chunks):
            yield chunk({"reasoning_content": part})
        for part in pieces(reply.text, reply.chunks):
            yield chunk({"content": part})
        for index, (call, arguments) in enumerate(_tool_calls(reply, ids)):
            begun = {**call, "function": {"name": call["function"]["name"], "arguments": ""}}
            yield chunk({"tool_calls": [{"index": index, **begun}]})
            for part in pieces(arguments, reply.chunks):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
        yield chunk({}, _FINISH[stop_reason_of(reply)])
        if counted:
            yield {**frame, "choices": [], "usage": _usage(request, reply)}
        yield "[DONE]"


def _frame(request: ReceivedRequest, reply: Reply, ids: IdSource, kind: str) -> Json:
    return {
        "id": f"chatcmpl-{ids.alnum(29)}",
        "object": kind,
        "created": ids.now,
        "model": reply.model or request.model or OpenAiEncoder.default_model,
        "service_tier": "default",
        "system_fingerprint": f"fp_{ids.hex(10)}",
    }


def _tool_calls(reply: Reply, ids: IdSource) -> Iterator[tuple[Json, str]]:
    for call in reply.tool_calls:
        arguments = arguments_text(call.arguments)
        function = {"name": call.name, "arguments": arguments}
        call_id = call.id or f"call_{ids.alnum(24)}"
        yield {"id": call_id, "type": "function", "function": function}, arguments


def _usage(request: ReceivedRequest, reply: Reply) -> Json:
    counts = count(request, reply)
    return {
        "prompt_tokens": counts.prompt,
        "completion_tokens": counts.output,
        "total_tokens": counts.total,
        "prompt_tokens_details": {"cached_tokens": counts.cache_read, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": counts.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }

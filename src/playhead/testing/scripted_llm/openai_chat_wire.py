"""OpenAI Chat Completions: read requests, say replies, plain and streamed. Knows no socket."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from playhead.testing.scripted_llm.llm_script import Failure, Reply, pieces, stop_reason_of
from playhead.testing.scripted_llm.mint import Mint
from playhead.testing.scripted_llm.openai_errors import DEFAULT_MODEL, answer_headers, error_object
from playhead.testing.scripted_llm.received import Request, Role, joined
from playhead.testing.scripted_llm.tokens import arguments_text, count
from playhead.testing.scripted_llm.wire import ROLES, Json, sse, text_of

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


class OpenAIChatWire:
    """`POST …/chat/completions`."""

    name = "openai-chat"

    def read(self, request: Request) -> Request:
        spoken: list[tuple[Role, str]] = []
        for message in request.json.get("messages") or []:
            texts = [text_of(message.get("content")), text_of(message.get("tool_calls"))]
            role = ROLES.get(message.get("role"), "user")
            spoken.append((role, "\n".join(text for text in texts if text)))
        return replace(
            request,
            wire=self.name,
            model=request.json.get("model"),
            stream=bool(request.json.get("stream")),
            messages=joined(spoken),
        )

    def whole(self, request: Request, reply: Reply, mint: Mint) -> Json:
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
        # OpenAI keeps its reasoning to itself; compatible servers send it under this name.
        if reply.thinking:
            message["reasoning_content"] = reply.thinking
        if reply.tool_calls:
            message["tool_calls"] = [call for call, _ in _tool_calls(reply, mint)]
        message |= {"refusal": None, "annotations": []}
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": _FINISH[stop_reason_of(reply)],
        }
        frame = _frame(request, reply, mint, "chat.completion")
        return {**frame, "choices": [choice], "usage": _usage(request, reply)}

    def events(self, request: Request, reply: Reply, mint: Mint) -> Iterator[Json | str]:
        counted = bool((request.json.get("stream_options") or {}).get("include_usage"))
        frame = _frame(request, reply, mint, "chat.completion.chunk")
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
        for index, (call, arguments) in enumerate(_tool_calls(reply, mint)):
            begun = {**call, "function": {"name": call["function"]["name"], "arguments": ""}}
            yield chunk({"tool_calls": [{"index": index, **begun}]})
            for part in pieces(arguments, reply.chunks):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
        yield chunk({}, _FINISH[stop_reason_of(reply)])
        if counted:
            yield {**frame, "choices": [], "usage": _usage(request, reply)}
        yield "[DONE]"

    def frames(self, _request: Request, events: Iterable[Json | str]) -> Iterator[bytes]:
        return map(sse, events)

    def stream_type(self, _request: Request) -> str:
        return "text/event-stream; charset=utf-8"

    def headers(self, mint: Mint) -> list[tuple[str, str]]:
        return answer_headers(mint)

    def error(self, failure: Failure, _mint: Mint) -> Json:
        return {"error": error_object(failure)}

    def error_event(self, failure: Failure, _mint: Mint) -> Json:
        return {"error": error_object(failure)}


def _frame(request: Request, reply: Reply, mint: Mint, kind: str) -> Json:
    return {
        "id": f"chatcmpl-{mint.alnum(29)}",
        "object": kind,
        "created": mint.now,
        "model": reply.model or request.model or DEFAULT_MODEL,
        "service_tier": "default",
        "system_fingerprint": f"fp_{mint.hex(10)}",
    }


def _tool_calls(reply: Reply, mint: Mint) -> Iterator[tuple[Json, str]]:
    for call in reply.tool_calls:
        arguments = arguments_text(call.arguments)
        function = {"name": call.name, "arguments": arguments}
        call_id = call.id or f"call_{mint.alnum(24)}"
        yield {"id": call_id, "type": "function", "function": function}, arguments


def _usage(request: Request, reply: Reply) -> Json:
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

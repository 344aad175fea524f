"""Shared parts of scripted OpenAI answers: errors, headers and models of both APIs, and the output items of the
Responses API with their stream events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from playhead.llm.llm_script import ReceivedRequest, Reply, ScriptedFailure, ToolCall, pieces
from playhead.llm.provider import Provider
from playhead.llm.reply_encoder import IdSource, Json, ReplyEncoder, arguments_text

# The default error form of providers is OpenAI's.
OPENAI_ERRORS = Provider()


class OpenAiEncoder(ReplyEncoder):
    """The base class of both encoders."""

    default_model = "gpt-6.1-sol"
    key_variable = "OPENAI_API_KEY"

    def environ(self, url: str) -> dict[str, str]:
        return {
            "OPENAI_BASE_URL": f"{url}/v1",
            "OPENAI_API_BASE": f"{url}/v1",
            # LiteLLM downloads a price list at its start; this avoids it, because a scripted agent needs no network.
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }

    def fake_key(self, ids: IdSource) -> str:
        return f"sk-proj-{ids.secret(74)}T3BlbkFJ{ids.secret(74)}"

    def headers(self, ids: IdSource) -> list[tuple[str, str]]:
        return [
            ("x-request-id", f"req_{ids.hex(32)}"),
            ("openai-organization", f"org-{ids.alnum(24)}"),
            ("openai-version", "2020-10-01"),
            ("openai-processing-ms", "42"),
            ("x-ratelimit-limit-requests", "10000"),
            ("x-ratelimit-remaining-requests", "9999"),
        ]

    def error(self, failure: ScriptedFailure, _ids: IdSource) -> Json:
        return OPENAI_ERRORS.error_body(failure.status, failure.message)


def items_of(request: ReceivedRequest, reply: Reply, ids: IdSource) -> list[Json]:
    """Return the finished items of a reply, in the order in which they come."""
    items: list[Json] = []
    if reply.thinking:
        items.append(_reasoning(request, reply, ids))
    if reply.text:
        part = {"type": "output_text", "annotations": [], "logprobs": [], "text": reply.text}
        items.append(
            {
                "id": f"msg_{ids.hex(50)}",
                "type": "message",
                "status": "completed",
                "content": [part],
                "role": "assistant",
            }
        )
    custom = {
        tool.get("name")
        for tool in request.json.get("tools") or []
        if isinstance(tool, Mapping) and tool.get("type") == "custom"
    }
    items += [_tool_call(call, ids, custom=call.name in custom) for call in reply.tool_calls]
    return items


def _reasoning(request: ReceivedRequest, reply: Reply, ids: IdSource) -> Json:
    item: dict[str, Any] = {
        "id": f"rs_{ids.hex(50)}",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": reply.thinking}],
    }
    if "reasoning.encrypted_content" in (request.json.get("include") or []):
        item["encrypted_content"] = f"gAAAAAB{ids.opaque(300)}"
    return item


def _tool_call(call: ToolCall, ids: IdSource, *, custom: bool) -> Json:
    """Return a function call, or the free text for a tool that was declared as `custom`."""
    said = {
        "status": "completed",
        "call_id": call.id or f"call_{ids.alnum(24)}",
        "name": call.name,
    }
    text = arguments_text(call.arguments)
    if custom:
        return {"id": f"ctc_{ids.hex(50)}", "type": "custom_tool_call", **said, "input": text}
    return {"id": f"fc_{ids.hex(50)}", "type": "function_call", **said, "arguments": text}


def item_events(item: Json, index: int, chunks: int | None) -> Iterator[Json]:
    """Yield the events that build one item, from `output_item.added` to `output_item.done`."""
    yield {"type": "response.output_item.added", "output_index": index, "item": _begun(item)}
    place = {"item_id": item["id"], "output_index": index}
    if item["type"] == "reasoning":
        yield from _summary_events(item, place, chunks)
    elif item["type"] == "message":
        yield from _text_events(item, place, chunks)
    elif item["type"] == "custom_tool_call":
        kind = "response.custom_tool_call_input"
        for part in pieces(item["input"], chunks):
            yield {"type": f"{kind}.delta", **place, "delta": part}
        yield {"type": f"{kind}.done", **place, "input": item["input"]}
    else:
        kind = "response.function_call_arguments"
        for part in pieces(item["arguments"], chunks):
            yield {"type": f"{kind}.delta", **place, "delta": part}
        yield {"type": f"{kind}.done", **place, "arguments": item["arguments"]}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _begun(item: Json) -> Json:
    """Return an item as it is announced, before its contents."""
    empty: dict[str, Any] = {"content": [], "summary": [], "arguments": "", "input": ""}
    fresh = {key: empty.get(key, value) for key, value in item.items()}
    return {**fresh, "status": "in_progress"} if "status" in item else fresh


def _text_events(item: Json, place: Json, chunks: int | None) -> Iterator[Json]:
    spot = {**place, "content_index": 0}
    part = item["content"][0]
    yield {"type": "response.content_part.added", **spot, "part": {**part, "text": ""}}
    for delta in pieces(part["text"], chunks):
        yield {"type": "response.output_text.delta", **spot, "delta": delta, "logprobs": []}
    text = part["text"]
    yield {"type": "response.output_text.done", **spot, "text": text, "logprobs": []}
    yield {"type": "response.content_part.done", **spot, "part": part}


def _summary_events(item: Json, place: Json, chunks: int | None) -> Iterator[Json]:
    spot = {**place, "summary_index": 0}
    part = item["summary"][0]
    yield {"type": "response.reasoning_summary_part.added", **spot, "part": {**part, "text": ""}}
    for delta in pieces(part["text"], chunks):
        yield {"type": "response.reasoning_summary_text.delta", **spot, "delta": delta}
    yield {"type": "response.reasoning_summary_text.done", **spot, "text": part["text"]}
    yield {"type": "response.reasoning_summary_part.done", **spot, "part": part}

"""Decode requests and responses of OpenAI's Chat Completions: documents, and the chunks of a stream."""

from __future__ import annotations

from typing import Any

from playhead.llm.body_frames import STREAM, BodyFrames, frames_of
from playhead.llm.decoding import (
    arguments_of,
    broken_answer,
    error_of,
    read_request,
    split_system,
    unread,
    why_broken,
)
from playhead.llm.jsontext import count, flag, joined, mapping, mappings, prose, string
from playhead.llm.llm_exchange import (
    Image,
    LlmError,
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

API = "openai.chat"
TOOL_WORDS = (b"tool_calls", b"function_call")

_SHAPED = frozenset(("model", "messages", "tools", "functions", "stream"))
# Where servers put reasoning: DeepSeek and vLLM the first, OpenRouter and newer vLLM the second.
_REASONING = ("reasoning_content", "reasoning")


def decode_request(body: bytes) -> LlmRequest:
    document, reason = read_request(body)
    system, messages = split_system(_message(one) for one in mappings(document.get("messages")))
    tools = [_tool(tool) for tool in mappings(document.get("tools"))]
    tools += [_function(one, "function") for one in mappings(document.get("functions"))]
    return LlmRequest(
        api=API,
        model=string(document.get("model")),
        system=system,
        messages=messages,
        tools=tuple(tools),
        stream=False if "stream" not in document else flag(document["stream"]),
        params=unread(document, _SHAPED),
        complete=reason is None,
        reason=reason,
    )


def decode_response(
    status: int, content_type: str, body: bytes, *, only: tuple[bytes, ...] = ()
) -> LlmResponse:
    frames = frames_of(content_type, body, only)
    if frames.kind == STREAM:
        return _of_stream(status, frames)
    document = frames.frames[0].value
    error = error_of(document, status)
    if not isinstance(document, dict) or (error is not None and "choices" not in document):
        return broken_answer(API, status, frames, error)
    choices = mappings(document.get("choices"))
    reason = frames.reason if error is None else why_broken(error, status, frames)
    return _response(document, choices, status=status, error=error, reason=reason)


def _of_stream(status: int, frames: BodyFrames) -> LlmResponse:
    head: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    error: LlmError | None = None
    for frame in frames.frames:
        chunk = mapping(frame.value)
        for key in ("id", "model", "usage", "service_tier"):
            if chunk.get(key):
                head[key] = chunk[key]
        for choice in mappings(chunk.get("choices")):
            _grow(choices.setdefault(count(choice.get("index")) or 0, {}), choice)
        if chunk.get("error") or chunk.get("type") == "error":
            error = error_of(chunk, status)
    whole = [_whole_choice(choices[index], index) for index in sorted(choices)]
    cut = _why_cut(frames, head, whole)
    reason = cut if error is None else why_broken(error, status, frames)
    return _response(head, whole, status=status, error=error, reason=reason)


def _why_cut(frames: BodyFrames, head: dict[str, Any], choices: list[dict[str, Any]]) -> str | None:
    finished = bool(choices) and all(choice.get("finish_reason") for choice in choices)
    # Not every server sends [DONE]; the usage chunk comes last, so nothing is missing after it.
    if frames.done or (finished and head.get("usage") and frames.reason is None):
        return frames.reason
    return "the stream ended before [DONE]"


def _grow(choice: dict[str, Any], chunk: dict[str, Any]) -> None:
    if chunk.get("finish_reason"):
        choice["finish_reason"] = chunk["finish_reason"]
    delta = mapping(chunk.get("delta"))
    for key in ("content", "refusal", *_REASONING):
        if delta.get(key):
            choice.setdefault(key, []).append(delta[key])
    calls = mappings(delta.get("tool_calls"))
    if isinstance(delta.get("function_call"), dict):
        calls.append({"index": 0, "function": delta["function_call"]})
    for call in calls:
        _grow_call(choice.setdefault("calls", {}), call)


def _grow_call(calls: dict[int, dict[str, Any]], piece: dict[str, Any]) -> None:
    call = calls.setdefault(_place(calls, piece), {"written": []})
    given = mapping(piece.get("function")) or mapping(piece.get("custom"))
    for key, value in (("id", piece.get("id")), ("type", piece.get("type"))):
        if value:
            call[key] = value
    if given.get("name"):
        call["name"] = given["name"]
    call["written"].append(given.get("arguments", given.get("input")))


def _place(calls: dict[int, dict[str, Any]], piece: dict[str, Any]) -> int:
    """Return the call that a piece belongs to: by its index, and if that is missing or wrong, by its id.

    Some servers omit the index; Google's compatible endpoint numbers all parallel calls 0. Both send each call whole,
    so that an unknown id begins a new call.
    """
    at, given = count(piece.get("index")), piece.get("id")
    known = calls.get(at, {}).get("id") if at is not None else None
    if at is not None and (not given or not known or given == known):
        return at
    same = (place for place, call in calls.items() if given and call.get("id") == given)
    return next(same, max(calls, default=-1) + 1 if given else max(calls, default=0))


def _whole_choice(choice: dict[str, Any], index: int) -> dict[str, Any]:
    """Return the choice in its form outside a stream."""
    message: dict[str, Any] = {
        key: joined(choice[key]) for key in ("content", "refusal", *_REASONING) if key in choice
    }
    calls = sorted(choice.get("calls", {}).items())
    message["tool_calls"] = [_whole_call(call) for _, call in calls]
    return {"index": index, "message": message, "finish_reason": choice.get("finish_reason")}


def _whole_call(call: dict[str, Any]) -> dict[str, Any]:
    name, written = call.get("name"), joined(call["written"])
    if call.get("type") == "custom":
        return {"id": call.get("id"), "custom": {"name": name, "input": written}}
    return {"id": call.get("id"), "function": {"name": name, "arguments": written}}


def _response(
    document: dict[str, Any],
    choices: list[dict[str, Any]],
    *,
    status: int,
    error: LlmError | None,
    reason: str | None,
) -> LlmResponse:
    answers = [_answer(choice, cut=reason is not None) for choice in choices]
    usage = mapping(document.get("usage"))
    return LlmResponse(
        api=API,
        status=status,
        id=string(document.get("id")),
        model=string(document.get("model")),
        parts=answers[0] if answers else (),
        stop_reason=string(choices[0].get("finish_reason")) if choices else None,
        usage=_usage(usage) if usage else None,
        error=error,
        complete=reason is None,
        reason=reason,
        service_tier=string(document.get("service_tier")),
        alternatives=tuple(answers[1:]),
    )


def _usage(usage: dict[str, Any]) -> Usage:
    read = mapping(usage.get("prompt_tokens_details"))
    cached = count(read.get("cached_tokens"))
    if cached is None:
        cached = count(usage.get("prompt_cache_hit_tokens"))  # DeepSeek's name
    return Usage(
        input_tokens=count(usage.get("prompt_tokens")),
        cache_read_tokens=cached,
        cache_write_tokens=count(read.get("cache_write_tokens")),
        output_tokens=count(usage.get("completion_tokens")),
        reasoning_tokens=count(
            mapping(usage.get("completion_tokens_details")).get("reasoning_tokens")
        ),
    )


def _answer(choice: dict[str, Any], *, cut: bool) -> tuple[Part, ...]:
    ended = not cut or bool(choice.get("finish_reason"))
    return _assistant_parts(mapping(choice.get("message")), ended=ended)


def _assistant_parts(message: dict[str, Any], *, ended: bool) -> tuple[Part, ...]:
    parts: list[Part] = []
    reasoning = next((message[key] for key in _REASONING if message.get(key)), None)
    if isinstance(reasoning, str):
        parts.append(Thinking(text=prose(reasoning)))
    parts += [part for part in _content(message.get("content")) if part != Text(text="")]
    if isinstance(message.get("refusal"), str):
        parts.append(Refusal(text=prose(message["refusal"])))
    calls = mappings(message.get("tool_calls"))
    if isinstance(message.get("function_call"), dict):
        calls = [*calls, {"function": message["function_call"]}]
    return (*parts, *(_call(call, ended=ended) for call in calls))


def _call(call: dict[str, Any], *, ended: bool) -> ToolUse:
    given = mapping(call.get("function"))
    if given:
        arguments, complete = arguments_of(given.get("arguments"), ended=ended)
    else:
        given = mapping(call.get("custom"))
        arguments, complete = given.get("input"), ended
    return ToolUse(
        id=string(call.get("id")),
        name=string(given.get("name")),
        arguments=arguments,
        complete=complete,
    )


def _message(message: dict[str, Any]) -> LlmMessage:
    role = string(message.get("role")) or "user"
    if role in ("tool", "function"):
        result = ToolResult(
            id=string(message.get("tool_call_id")),
            content=_content(message.get("content")),
            name=string(message.get("name")),
        )
        return LlmMessage(role="tool", parts=(result,))
    if role == "assistant":
        return LlmMessage(role=role, parts=_assistant_parts(message, ended=True))
    return LlmMessage(role=role, parts=_content(message.get("content")))


def _content(content: Any) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (Text(text=prose(content)),)
    return tuple(_part(block) for block in mappings(content))


def _part(block: dict[str, Any]) -> Part:
    kind = string(block.get("type"))
    if kind == "text":
        return Text(text=prose(block.get("text")))
    if kind == "refusal":
        return Refusal(text=prose(block.get("refusal")))
    if kind == "image_url":
        address = block.get("image_url")
        url = string(address) or string(mapping(address).get("url")) or ""
        return image_of_url(url)
    return Other(type=kind, data=block)


def image_of_url(url: str) -> Image:
    """A picture by address; ``data:`` addresses carry the picture itself."""
    if not url.startswith("data:"):
        return Image(media_type=None, url=url or None)
    head, _, data = url[5:].partition(",")
    return Image(media_type=head.partition(";")[0] or None, data=data)


def _tool(tool: dict[str, Any]) -> LlmTool:
    kind = string(tool.get("type"))
    return _function(mapping(tool.get("function")) or mapping(tool.get("custom")) or tool, kind)


def _function(given: dict[str, Any], kind: str | None) -> LlmTool:
    return LlmTool(
        name=string(given.get("name")),
        description=string(given.get("description")),
        schema=given.get("parameters"),
        type=kind,
    )

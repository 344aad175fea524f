"""Decode requests and responses of Anthropic's Messages API: documents, and the events of a stream."""

from __future__ import annotations

from typing import Any

from playhead.llm.body_frames import STREAM, BodyFrames, frames_of
from playhead.llm.decoding import (
    arguments_of,
    broken_answer,
    error_of,
    read_request,
    unread,
    why_broken,
)
from playhead.llm.jsontext import (
    count,
    flag,
    items,
    joined,
    mapping,
    mappings,
    prose,
    string,
    total,
)
from playhead.llm.llm_exchange import (
    Image,
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
    text_of,
)

API = "anthropic.messages"
# Only events with one of these words can be part of a tool call.
TOOL_WORDS = (b"tool_use", b"input_json_delta", b"content_block_stop")

_SHAPED = frozenset(("model", "system", "messages", "tools", "stream"))
_PROVIDER_CALLS = frozenset(("server_tool_use", "mcp_tool_use"))
# Internal members of a block that is being assembled; JSON cannot hold these keys.
_PIECES, _STOPPED, _ENDED = object(), object(), object()


def decode_request(body: bytes) -> LlmRequest:
    document, reason = read_request(body)
    system = text_of(_parts(document.get("system")))
    return LlmRequest(
        api=API,
        model=string(document.get("model")),
        system=system or None,
        messages=tuple(
            LlmMessage(role=string(one.get("role")) or "user", parts=_parts(one.get("content")))
            for one in mappings(document.get("messages"))
        ),
        tools=tuple(_tool(tool) for tool in mappings(document.get("tools"))),
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
    if error is not None or not isinstance(document, dict):
        return broken_answer(API, status, frames, error)
    return _response(document, status=status, error=None, reason=frames.reason)


def _of_stream(status: int, frames: BodyFrames) -> LlmResponse:
    message: dict[str, Any] = {}
    blocks: dict[int, dict[Any, Any]] = {}
    error, stopped = None, False
    for frame in frames.frames:
        event = mapping(frame.value)
        kind = event.get("type")
        if kind == "content_block_delta":
            _grow(blocks, event)
        elif frame.partial:
            continue  # a partial delta is useful; the other events replace known values and must be whole
        elif kind == "content_block_start":
            blocks[_index(event)] = dict(mapping(event.get("content_block")))
        elif kind == "content_block_stop":
            blocks.setdefault(_index(event), {})[_STOPPED] = True
        elif kind == "message_start":
            message.update(mapping(event.get("message")))
        elif kind == "message_delta":
            _finish(message, event)
        elif kind == "message_stop":
            stopped = True
        elif (frame.event or "").lower().endswith("exception"):
            error = error_of({"error": {"type": frame.event, **event}}, status)  # Bedrock
        elif "error" in event:
            error = error_of(event, status)
    message["content"] = [_whole_block(blocks[index]) for index in sorted(blocks)]
    if error is not None:
        reason = why_broken(error, status, frames)
    else:
        reason = frames.reason if stopped else "the stream ended before message_stop"
    return _response(message, status=status, error=error, reason=reason)


def _index(event: dict[str, Any]) -> int:
    return count(event.get("index")) or 0


def _grow(blocks: dict[int, dict[Any, Any]], event: dict[str, Any]) -> None:
    delta = mapping(event.get("delta"))
    block = blocks.setdefault(_index(event), {})
    for key, piece in delta.items():
        if key != "type":
            block.setdefault(_PIECES, {}).setdefault(key, []).append(piece)


def _whole_block(block: dict[Any, Any]) -> dict[Any, Any]:
    """Return the block in its form outside a stream."""
    pieces = block.pop(_PIECES, {})
    stopped = block.pop(_STOPPED, False)
    for key, kind in (("text", "text"), ("thinking", "thinking"), ("signature", "thinking")):
        if key in pieces:
            block[key] = joined([block.get(key), *pieces[key]])
            block.setdefault("type", kind)
    if "partial_json" in pieces or "input" in block:
        block.setdefault("type", "tool_use")
        written = joined(pieces.get("partial_json", ()))
        if written or not stopped:
            block["input"], block[_ENDED] = arguments_of(written, ended=stopped)
    if "citation" in pieces:
        block["citations"] = [*items(block.get("citations")), *pieces["citation"]]
    return block


def _finish(message: dict[str, Any], event: dict[str, Any]) -> None:
    message.update(mapping(event.get("delta")))
    # Counts are cumulative: a later count replaces an earlier one, a missing or null one changes nothing.
    usage = dict(mapping(message.get("usage")))
    usage.update({k: v for k, v in mapping(event.get("usage")).items() if v is not None})
    message["usage"] = usage


def _response(
    message: dict[str, Any], *, status: int, error: Any, reason: str | None
) -> LlmResponse:
    usage = mapping(message.get("usage"))
    parts = _parts(message.get("content"))
    if message.get("stop_reason") == "refusal":
        why = mapping(message.get("stop_details"))
        said = prose(why.get("explanation")) or prose(why.get("category"))
        parts = (*parts, Refusal(text=said or "refusal"))
    return LlmResponse(
        api=API,
        status=status,
        id=string(message.get("id")),
        model=string(message.get("model")),
        parts=parts,
        stop_reason=string(message.get("stop_reason")),
        usage=_usage(usage) if usage else None,
        error=error,
        complete=reason is None,
        reason=reason,
        service_tier=string(usage.get("service_tier")),
    )


def _usage(usage: dict[str, Any]) -> Usage:
    read = count(usage.get("cache_read_input_tokens"))
    written = count(usage.get("cache_creation_input_tokens"))
    fresh = count(usage.get("input_tokens"))
    return Usage(
        # Anthropic counts cached tokens beside input_tokens, the others inside.
        input_tokens=None if fresh is None else total(fresh, read, written),
        cache_read_tokens=read,
        cache_write_tokens=written,
        output_tokens=count(usage.get("output_tokens")),
        reasoning_tokens=count(mapping(usage.get("output_tokens_details")).get("thinking_tokens")),
        cache_write_1h_tokens=count(
            mapping(usage.get("cache_creation")).get("ephemeral_1h_input_tokens")
        ),
    )


def _parts(content: Any) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (Text(text=prose(content)),)
    blocks = [content] if isinstance(content, dict) else mappings(content)
    return tuple(_part(block) for block in blocks)


def _part(block: dict[Any, Any]) -> Part:
    kind = string(block.get("type")) or ""
    if kind == "text":
        return Text(text=prose(block.get("text")))
    if kind == "thinking":
        text = prose(block.get("thinking"))
        return Thinking(text=text, signature=string(block.get("signature")))
    if kind == "redacted_thinking":
        return Thinking(text="", signature=string(block.get("data")), redacted=True)
    if kind == "tool_use" or kind in _PROVIDER_CALLS:
        given = block.get("input")
        return ToolUse(
            id=string(block.get("id")),
            name=string(block.get("name")),
            arguments=given,
            # Complete arguments are an object; text is the part of a call that was cut off.
            complete=bool(block.get(_ENDED, isinstance(given, dict))),
            by_provider=kind in _PROVIDER_CALLS,
        )
    if kind == "tool_result" or kind.endswith("_tool_result"):
        return ToolResult(
            id=string(block.get("tool_use_id")),
            content=_parts(block.get("content")),
            is_error=flag(block.get("is_error")) or False,
        )
    if kind == "image":
        source = mapping(block.get("source"))
        return Image(
            media_type=string(source.get("media_type")),
            url=string(source.get("url")),
            data=string(source.get("data")),
        )
    own = {key: value for key, value in block.items() if key is not _ENDED}
    return Other(type=kind or None, data=own)


def _tool(tool: dict[str, Any]) -> LlmTool:
    return LlmTool(
        name=string(tool.get("name")),
        description=string(tool.get("description")),
        schema=tool.get("input_schema"),
        type=string(tool.get("type")) or "custom",
    )

"""Decode OpenAI's Responses API: bodies, streams, and WebSockets that carry many exchanges."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from playhead.llm.body_frames import STREAM, BodyFrame, BodyFrames, frames_of
from playhead.llm.decoding import (
    broken_answer,
    error_of,
    read_request,
    split_system,
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
    parse,
    prose,
    string,
)
from playhead.llm.llm_exchange import (
    LlmError,
    LlmExchange,
    LlmRequest,
    LlmResponse,
    LlmTool,
    Part,
    Usage,
)
from playhead.llm.openai.decode_items import item_parts, messages_of

API = "openai.responses"
TOOL_WORDS = (b"_call",)

_SHAPED = frozenset(
    ("type", "model", "instructions", "input", "tools", "stream", "previous_response_id")
)
# Events that end a response.
_OVER = frozenset(
    ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
)
# Events that add text: the member of the item that holds it, and the type of the part there.
_WRITES: dict[str, tuple[str, str]] = {
    "response.output_text": ("content", "output_text"),
    "response.refusal": ("content", "refusal"),
    "response.reasoning_text": ("content", "reasoning_text"),
    "response.reasoning_summary_text": ("summary", "summary_text"),
    "response.function_call_arguments": ("arguments", ""),
    "response.mcp_call_arguments": ("arguments", ""),
    "response.custom_tool_call_input": ("input", ""),
    "response.code_interpreter_call_code": ("code", ""),
}

_CALL_OF = {
    "arguments": "function_call",
    "input": "custom_tool_call",
    "code": "code_interpreter_call",
}


def decode_request(body: bytes) -> LlmRequest:
    document, reason = read_request(body)
    if document.get("type") == "response.create" and isinstance(document.get("response"), dict):
        document = document["response"]
    system, messages = split_system(
        messages_of(document.get("input")), prose(document.get("instructions"))
    )
    conversation = document.get("conversation")
    return LlmRequest(
        api=API,
        model=string(document.get("model")),
        system=system,
        messages=messages,
        tools=tuple(_tool(tool) for tool in mappings(document.get("tools"))),
        stream=False if "stream" not in document else flag(document["stream"]),
        params=unread(document, _SHAPED),
        previous_id=string(document.get("previous_response_id"))
        or string(conversation)
        or string(mapping(conversation).get("id")),
        complete=reason is None,
        reason=reason,
    )


def decode_response(
    status: int, content_type: str, body: bytes, *, only: tuple[bytes, ...] = ()
) -> LlmResponse:
    frames = frames_of(content_type, body, only)
    first = mapping(frames.frames[0].value) if frames.frames else {}
    if frames.kind == STREAM or (string(first.get("type")) or "").startswith("response."):
        return _of_stream(status, frames)
    document = frames.frames[0].value
    error = error_of(document, status)
    if not isinstance(document, dict) or (error is not None and "output" not in document):
        return broken_answer(API, status, frames, error)
    output = mappings(document.get("output"))
    # Of a text that is cut off, only the last item can lack its end.
    cut = len(output) - 1 if frames.reason else len(output)
    parts = [part for at, item in enumerate(output) for part in item_parts(item, ended=at < cut)]
    reason = frames.reason if error is None else why_broken(error, status, frames)
    return _response(document, parts, status=status, error=error, reason=reason)


def decode_events(events: Iterable[Any], status: int | None = None) -> LlmResponse:
    """Return the response of a list of decoded events."""
    frames = tuple(BodyFrame(value=event) for event in events)
    return _of_stream(status, BodyFrames(kind=STREAM, frames=frames))


class _Assembly:
    """A response that is being streamed: its items by index, and the texts that are being written."""

    __slots__ = ("ended", "error", "head", "items", "over", "texts")

    def __init__(self) -> None:
        self.head: dict[str, Any] = {}
        self.items: dict[int, dict[str, Any]] = {}
        self.ended: set[int] = set()
        self.texts: dict[tuple[int, str, int], list[Any]] = {}
        self.error: LlmError | None = None
        self.over = False

    def take(self, event: dict[str, Any], *, partial: bool) -> None:
        kind = string(event.get("type")) or ""
        writes, _, action = kind.rpartition(".")
        at = count(event.get("output_index")) or 0
        if writes in _WRITES and action in ("delta", "done"):
            self._write(event, writes, at, whole=action == "done", partial=partial)
        elif partial:
            return  # a partial delta is useful; the other events replace known values and must be whole
        elif kind == "response.output_item.added":
            self.items[at] = mapping(event.get("item"))
        elif kind == "response.output_item.done":
            self.items[at] = mapping(event.get("item"))
            self.ended.add(at)
        elif kind in _OVER or isinstance(event.get("response"), dict):
            self.head.update(mapping(event.get("response")))
            self.over = self.over or kind in _OVER
        elif kind == "error" or "error" in event:
            self.error = error_of(event, None)

    def _write(
        self, event: dict[str, Any], writes: str, at: int, *, whole: bool, partial: bool
    ) -> None:
        place, kind = _WRITES[writes]
        index = count(event.get("content_index", event.get("summary_index"))) or 0
        pieces = self.texts.setdefault((at, f"{place}:{kind}", index), [])
        if not whole:
            pieces.append(event.get("delta"))
        elif not partial:
            key = place if place in ("arguments", "input", "code") else "text"
            pieces[:] = [event.get("refusal" if kind == "refusal" else key)]

    def output(self) -> list[tuple[dict[str, Any], bool]]:
        """Return the items in their form outside a stream, and whether each is complete."""
        if self.over and items(self.head.get("output")):
            return [(item, True) for item in mappings(self.head["output"])]
        growing = {at: dict(item) for at, item in self.items.items()}
        for (at, slot, _), pieces in sorted(self.texts.items()):
            if at not in self.ended:
                _put(growing.setdefault(at, {}), slot, joined(pieces))
        return [(growing[at], at in self.ended) for at in sorted(growing)]


def _put(item: dict[str, Any], slot: str, text: str) -> None:
    place, _, kind = slot.partition(":")
    if not kind:
        item.setdefault("type", _CALL_OF[place])
        item[place] = text
        return
    thinks = kind in ("reasoning_text", "summary_text")
    item.setdefault("type", "reasoning" if thinks else "message")
    key = "refusal" if kind == "refusal" else "text"
    item[place] = [*items(item.get(place)), {"type": kind, key: text}]


def _of_stream(status: int | None, frames: BodyFrames) -> LlmResponse:
    assembly = _Assembly()
    for frame in frames.frames:
        assembly.take(mapping(frame.value), partial=frame.partial)
    error = assembly.error or error_of(assembly.head, None)
    parts = [
        part
        for item, ended in assembly.output()
        for part in item_parts(item, ended=ended or assembly.over)
    ]
    if error is not None:
        reason = why_broken(error, status, frames)
    else:
        reason = frames.reason if assembly.over else "the stream ended before response.completed"
    return _response(assembly.head, parts, status=status, error=error, reason=reason)


def _response(
    document: dict[str, Any],
    parts: list[Part],
    *,
    status: int | None,
    error: LlmError | None,
    reason: str | None,
) -> LlmResponse:
    usage = mapping(document.get("usage"))
    stop = string(mapping(document.get("incomplete_details")).get("reason"))
    over = string(document.get("status"))
    if over in ("in_progress", "queued") or (over == "incomplete" and reason is not None):
        over = None  # not finished, or the details of the reason have not arrived
    return LlmResponse(
        api=API,
        status=status,
        id=string(document.get("id")),
        model=string(document.get("model")),
        parts=tuple(parts),
        stop_reason=stop or over,
        usage=_usage(usage) if usage else None,
        error=error,
        complete=reason is None,
        reason=reason,
        service_tier=string(document.get("service_tier")),
    )


def _usage(usage: dict[str, Any]) -> Usage:
    read = mapping(usage.get("input_tokens_details"))
    return Usage(
        input_tokens=count(usage.get("input_tokens")),
        cache_read_tokens=count(read.get("cached_tokens")),
        cache_write_tokens=count(read.get("cache_write_tokens")),
        output_tokens=count(usage.get("output_tokens")),
        reasoning_tokens=count(mapping(usage.get("output_tokens_details")).get("reasoning_tokens")),
    )


def _tool(tool: dict[str, Any]) -> LlmTool:
    kind = string(tool.get("type"))
    return LlmTool(
        name=string(tool.get("name")) or string(tool.get("server_label")) or kind,
        description=string(tool.get("description")),
        schema=tool.get("parameters"),
        type=kind,
    )


SENT = "sent"
RECEIVED = "received"


@dataclass(slots=True)
class _Open:
    request: LlmRequest
    stream_id: str | None
    events: list[Any] = field(default_factory=list)


def decode_websocket(messages: Iterable[tuple[str, bytes | str]]) -> tuple[LlmExchange, ...]:
    """Decode the exchanges on one socket from its messages in order: ("sent" | "received", message).

    A ``response.create`` opens an exchange; a received message belongs to the last exchange with the same
    ``stream_id`` (sockets without multiplexing have none).
    """
    exchanges: list[_Open] = []
    for direction, message in messages:
        data = message.encode("utf-8", "replace") if isinstance(message, str) else bytes(message)
        value = mapping(parse(data.decode("utf-8", "replace")).value)
        stream_id = string(value.get("stream_id"))
        if direction == SENT:
            if value.get("type") in ("response.create", None):
                exchanges.append(_Open(request=decode_request(data), stream_id=stream_id))
            continue
        for exchange in reversed(exchanges):
            if exchange.stream_id == stream_id:
                exchange.events.append(value)
                break
    return tuple(
        LlmExchange(request=one.request, response=decode_events(one.events) if one.events else None)
        for one in exchanges
    )

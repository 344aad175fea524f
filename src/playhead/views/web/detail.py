"""One item of a run in full, as JSON: what the viewer's detail pane shows. Pure.

Streams are given once, whole, with the sizes and times of their pieces: the page cuts them itself.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from playhead import llm as wire
from playhead.exporters.story_json import failure_json, item_json
from playhead.llm.http.content_encoding import undo
from playhead.recording.chunks import as_text
from playhead.story import CallItem, Item, NoteItem, Story, TurnItem
from playhead.story.streamed_text import text_pieces


def detail(story: Story, ref: str) -> dict[str, Any] | None:
    """None: the run has no such item. `~` and what follows names a row of the same item."""
    item = story.items.get(ref.partition("~")[0])
    if item is None:
        return None
    told = {**item_json(item), **_common(item)}
    if isinstance(item, CallItem):
        return {**told, **_call(item)}
    if isinstance(item, TurnItem):
        return {**told, "input": item.input, "value": item.value}
    return told


def _common(item: Item) -> dict[str, Any]:
    why = item.purpose if isinstance(item, TurnItem) else item.why
    cause = None if isinstance(item, TurnItem) else item.cause
    failure = None if isinstance(item, NoteItem) else failure_json(item.failure)
    pid = item.ref.partition(":")[0]
    return {
        "why": why,
        "parent": item.parent,
        "cause": cause,
        "pid": pid,
        "place": item.place,
        "failure": failure,
    }


def _call(call: CallItem) -> dict[str, Any]:
    names = list(dict.fromkeys(piece.stream for piece in call.pieces))
    whole = {name: b"".join(p.data for p in call.pieces if p.stream == name) for name in names}
    coding = _header(call.head, "content-encoding")
    plain = undo(coding, whole["body"]) if coding and "body" in whole else None
    return {
        "request": call.request,
        "facts": dict(call.facts),
        "outcome": {
            name: value
            for name, value in call.outcome.items()
            if name not in ("call", "how", "took_ns", "value", "error")
        },
        "head": call.head,
        "value": call.value,
        "streams": {name: as_text(raw) for name, raw in whole.items()},
        "pieces": [
            [names.index(piece.stream), piece.at_ns, len(piece.data)] for piece in call.pieces
        ],
        "plain_body": None if plain is None or plain.reason else as_text(plain.body),
        "llm": [_exchange(one) for one in call.llm],
        "speech": _speech(call),
        "cost_source": None if call.cost is None else call.cost.source,
    }


def _exchange(exchange: wire.LlmExchange) -> dict[str, Any]:
    request, response = exchange.request, exchange.response
    asked = {
        "api": request.api,
        "model": request.model,
        "system": request.system,
        "messages": [
            {"role": one.role, "parts": [_part(part) for part in one.parts]}
            for one in request.messages
        ],
        "tools": [dataclasses.asdict(tool) for tool in request.tools],
        "params": dict(request.params),
        "stream": request.stream,
        "previous_id": request.previous_id,
        "complete": request.complete,
        "reason": request.reason,
    }
    if response is None:
        return {"request": asked, "response": None}
    answered = {
        "model": response.model,
        "status": response.status,
        "id": response.id,
        "parts": [_part(part) for part in response.parts],
        "stop_reason": response.stop_reason,
        "usage": None if response.usage is None else dataclasses.asdict(response.usage),
        "error": None if response.error is None else dataclasses.asdict(response.error),
        "complete": response.complete,
        "reason": response.reason,
    }
    return {"request": asked, "response": answered}


_TYPES = {
    wire.Text: "text",
    wire.Refusal: "refusal",
    wire.Thinking: "thinking",
    wire.ToolUse: "tool_use",
    wire.ToolResult: "tool_result",
    wire.Image: "image",
    wire.Other: "other",
}


def _part(part: wire.Part) -> dict[str, Any]:
    if isinstance(part, wire.ToolResult):
        content = [_part(one) for one in part.content]
        told = {"id": part.id, "name": part.name, "is_error": part.is_error, "content": content}
        return {"type": "tool_result", **told}
    if isinstance(part, wire.Text):  # nearly all of them
        return {"type": "text", "text": part.text}
    if isinstance(part, wire.Other):
        return {"type": "other", "kind": part.type, "data": part.data}
    return {"type": _TYPES[type(part)], **dataclasses.asdict(part)}


def _speech(call: CallItem) -> list[list[int]]:
    """When the model said how much: [ns since the call, UTF-16 units, whether it was a thought]."""
    said = text_pieces(call)
    if len(call.llm) != 1 or call.llm[0].response is None:
        return []
    if "".join(one.text for one in said if not one.is_thought) != call.llm[0].response.text:
        return []
    return [
        [one.at_ns, len(one.text.encode("utf-16-le", "surrogatepass")) // 2, int(one.is_thought)]
        for one in said
    ]


def _header(head: Any, wanted: str) -> str | None:
    headers = head.get("headers") if isinstance(head, dict) else None
    pairs = headers.items() if isinstance(headers, dict) else headers or ()
    for pair in pairs:
        if isinstance(pair, (list, tuple)) and len(pair) == 2 and str(pair[0]).lower() == wanted:
            return str(pair[1])
    return None

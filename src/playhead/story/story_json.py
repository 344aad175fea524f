"""The JSON form of a story: the one that `show --json`, `export`, the HTTP API and the page use. Pure.

- `run_json`: the run without its items. `story_json`: the same with all items as a tree.
- `item_json`: one item of the tree, without contents. `whole_item_json`: with its contents.
- `call_json`: a call with its contents, its chunks one by one, and the numbers of the calls below it.

The page needs 100,000 items at once, so it gets the members of `item_json` as columns: `views.web.outline`
is the one function that derives them.
"""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from typing import Any

from playhead import llm
from playhead.llm.http_headers import undo
from playhead.recording.chunks import as_text
from playhead.story.call_contents import text_pieces
from playhead.story.shape import CallItem, Failure, Item, NoteItem, Story, TurnItem
from playhead.tape.ending import ending_of
from playhead.tape.manifest import DETAILS, verdict_of

# Members of an outcome that have their own place in the JSON form.
_NOT_REPEATED = frozenset({"call", "how", "took_ns", "value", "error"})
_PART_TYPES = {
    llm.Text: "text",
    llm.Refusal: "refusal",
    llm.Thinking: "thinking",
    llm.ToolUse: "tool_use",
    llm.ToolResult: "tool_result",
    llm.Image: "image",
    llm.Other: "other",
}


def story_json(story: Story) -> dict[str, Any]:
    return {
        **run_json(story),
        "tree": [_node(story, ref) for ref in story.children.get(None, ())],
    }


def run_json(story: Story) -> dict[str, Any]:
    manifest = story.manifest
    return {
        "id": manifest.run,
        "name": manifest.name,
        "status": story.status,
        "started_at": manifest.started_at,
        "started_ns": manifest.started_ns,
        "duration_s": story.duration_ns / 1e9,
        "start_up_s": story.start_up_ns / 1e9,
        "command": manifest.command,
        "cwd": manifest.cwd,
        "project": manifest.project,
        "git_commit": manifest.git_commit,
        "tags": manifest.tags,
        "host": manifest.host,
        "python": manifest.python,
        "playhead": manifest.playhead,
        "level": manifest.level,
        "redacted": manifest.redacted,
        "exit_code": manifest.exit_code,
        "replay_of": manifest.replay_of,
        "verdict": verdict_of(manifest),
        "ending": ending_of(story.status, manifest).as_json(),
        "keep": manifest.keep,
        "details": manifest.extra.get(DETAILS),
        "failure": failure_json(story.failure),
        "last_seam": story.last_seam,
        "failed_turn": story.failed_turn,
        "in_flight": [_name(story.items[ref]) for ref in story.in_flight],
        "damage": list(story.damage),
        "totals": {**dataclasses.asdict(story.totals), "tokens": story.totals.tokens},
    }


def item_json(item: Item) -> dict[str, Any]:
    """One item without its contents."""
    common = {
        "ref": item.ref,
        "lane": item.lane,
        "wall_ns": item.wall,
        "at": item.at,
        "who": item.who,
    }
    if isinstance(item, TurnItem):
        return {
            "type": "turn",
            "name": item.name,
            "purpose": item.purpose,
            "how": item.how,
            "took_ns": item.took_ns,
            "decision": item.decision,
            "reason": item.reason,
            "last_seam": item.last_seam,
            "request": item.request,
            "seams": [dataclasses.asdict(seam) for seam in item.seams],
            "failure": failure_json(item.failure),
            **common,
        }
    if isinstance(item, NoteItem):
        return {"type": "event", "kind": item.kind, "data": item.data, "why": item.why, **common}
    return {
        "type": "call",
        "number": item.number,
        "boundary": item.boundary,
        "name": item.name,
        "effect": item.effect,
        "api": item.api,
        "how": item.how,
        "took_ns": item.took_ns,
        "failure": failure_json(item.failure),
        "cause": item.cause,
        "parent": item.parent,
        "model": next(
            (one.response.model or one.request.model for one in item.llm if one.response), None
        ),
        "usage": [
            dataclasses.asdict(one.response.usage)
            for one in item.llm
            if one.response and one.response.usage
        ],
        "cost_usd": None if item.cost is None else float(Decimal(item.cost.usd)),
        **common,
    }


def whole_item_json(item: Item) -> dict[str, Any]:
    """One item with its contents: request, answer, streams, and for an LLM call the decoded exchanges.

    Each stream is given once, whole (`streams`), with the time and size of its pieces (`pieces`: the index of
    the stream, nanoseconds since the call, bytes).
    """
    whole = {
        **item_json(item),
        "why": item.purpose if isinstance(item, TurnItem) else item.why,
        "parent": item.parent,
        "cause": None if isinstance(item, TurnItem) else item.cause,
        "pid": item.ref.partition(":")[0],
        "place": item.place,
        "failure": None if isinstance(item, NoteItem) else failure_json(item.failure),
    }
    if isinstance(item, CallItem):
        return {**whole, **_call_contents(item)}
    if isinstance(item, TurnItem):
        return {**whole, "input": item.input, "context": item.context, "value": item.value}
    return whole


def item_at(story: Story, ref: str) -> dict[str, Any] | None:
    """Return the item that `ref` names, whole; None: the run has none. A row of an item (`REF~0`) means the item."""
    item = story.items.get(ref.partition("~")[0])
    return None if item is None else whole_item_json(item)


def call_json(story: Story, call: CallItem) -> dict[str, Any]:
    """A call with its contents, each piece of its streams as text, and the calls below it."""
    return {
        **whole_item_json(call),
        "chunks": [
            {"stream": piece.stream, "at_ns": piece.at_ns, **as_text(piece.data)}
            for piece in call.pieces
        ],
        "children": [_name(story.items[ref]) for ref in story.children.get(call.ref, ())],
    }


def failure_json(failure: Failure | None) -> dict[str, Any] | None:
    return None if failure is None else dataclasses.asdict(failure)


def exchange_json(exchange: llm.LlmExchange) -> dict[str, Any]:
    """One request to a model with its response. Parts of messages have a `type` (`text`, `tool_use`…)."""
    request, response = exchange.request, exchange.response
    return {
        "request": {
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
        },
        "response": None if response is None else _response(response),
    }


def _response(response: llm.LlmResponse) -> dict[str, Any]:
    return {
        "api": response.api,
        "model": response.model,
        "status": response.status,
        "id": response.id,
        "parts": [_part(part) for part in response.parts],
        "alternatives": [[_part(part) for part in one] for one in response.alternatives],
        "stop_reason": response.stop_reason,
        "usage": None if response.usage is None else dataclasses.asdict(response.usage),
        "error": None if response.error is None else dataclasses.asdict(response.error),
        "complete": response.complete,
        "reason": response.reason,
        "service_tier": response.service_tier,
    }


def _part(part: llm.Part) -> dict[str, Any]:
    if isinstance(part, llm.Text):  # nearly all parts are text: skip the slow asdict
        return {"type": "text", "text": part.text}
    if isinstance(part, llm.ToolResult):
        content = [_part(one) for one in part.content]
        named = {"id": part.id, "name": part.name, "is_error": part.is_error}
        return {"type": "tool_result", **named, "content": content}
    if isinstance(part, llm.Other):
        return {"type": "other", "kind": part.type, "data": part.data}
    return {"type": _PART_TYPES[type(part)], **dataclasses.asdict(part)}


def _call_contents(call: CallItem) -> dict[str, Any]:
    names = list(dict.fromkeys(piece.stream for piece in call.pieces))
    whole = {name: b"".join(p.data for p in call.pieces if p.stream == name) for name in names}
    encoding = _header(call.head, "content-encoding")
    plain = undo(encoding, whole["body"]) if encoding and "body" in whole else None
    return {
        "request": call.request,
        "facts": dict(call.facts),
        "outcome": {k: v for k, v in call.outcome.items() if k not in _NOT_REPEATED},
        "head": call.head,
        "value": call.value,
        "streams": {name: as_text(raw) for name, raw in whole.items()},
        "pieces": [[names.index(one.stream), one.at_ns, len(one.data)] for one in call.pieces],
        "plain_body": None if plain is None or plain.reason else as_text(plain.body),
        "llm": [exchange_json(one) for one in call.llm],
        "speech": _text_times(call),
        "cost_source": None if call.cost is None else call.cost.source,
    }


def _text_times(call: CallItem) -> list[list[int]]:
    """Return when the text of an answer arrived: [nanoseconds since the call, UTF-16 units, 1 for thinking].

    Empty if the pieces do not add up to the decoded text, or if the call has several exchanges.
    """
    pieces = text_pieces(call)
    if len(call.llm) != 1 or call.llm[0].response is None:
        return []
    if "".join(one.text for one in pieces if not one.is_thought) != call.llm[0].response.text:
        return []
    # JavaScript counts text in UTF-16 units.
    return [
        [one.at_ns, len(one.text.encode("utf-16-le", "surrogatepass")) // 2, int(one.is_thought)]
        for one in pieces
    ]


def _header(head: Any, wanted: str) -> str | None:
    headers = head.get("headers") if isinstance(head, dict) else None
    if isinstance(headers, dict):
        headers = list(headers.items())
    for pair in headers if isinstance(headers, list) else ():
        if isinstance(pair, (list, tuple)) and len(pair) == 2 and str(pair[0]).lower() == wanted:
            return str(pair[1])
    return None


def _node(story: Story, ref: str) -> dict[str, Any]:
    below = [_node(story, child) for child in story.children.get(ref, ())]
    return {**item_json(story.items[ref]), "children": below}


def _name(item: Item) -> Any:
    """Return the number of a call, or the ref of any other item: the name that commands use."""
    return item.number if isinstance(item, CallItem) else item.ref

"""A story as plain JSON, for `--json` and for other programs. Pure."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from typing import Any

from playhead.recording.chunks import as_text
from playhead.story import CallItem, Failure, Item, NoteItem, Story, TurnItem


def story_json(story: Story) -> dict[str, Any]:
    manifest = story.manifest
    return {
        "id": manifest.run,
        "name": manifest.name,
        "status": story.status,
        "started_at": manifest.started_at,
        "duration_s": story.duration_ns / 1e9,
        "command": manifest.command,
        "tags": manifest.tags,
        "level": manifest.level,
        "redacted": manifest.redacted,
        "exit_code": manifest.exit_code,
        "failure": failure_json(story.failure),
        "last_seam": story.last_seam,
        "in_flight": [_number(story.items[ref]) for ref in story.in_flight],
        "damage": list(story.damage),
        "totals": {**dataclasses.asdict(story.totals), "tokens": story.totals.tokens},
        "tree": [_node(story, ref) for ref in story.children.get(None, ())],
    }


def call_json(story: Story, call: CallItem) -> dict[str, Any]:
    """One call whole: its request, its answer, and each piece of its streams."""
    return {
        **item_json(call),
        "request": call.request,
        "facts": dict(call.facts),
        "head": call.head,
        "value": call.value,
        "chunks": [
            {"stream": piece.stream, "at_ns": piece.at_ns, **as_text(piece.data)}
            for piece in call.pieces
        ],
        "llm": [dataclasses.asdict(exchange) for exchange in call.llm],
        "children": [_number(story.items[ref]) for ref in story.children.get(call.ref, ())],
    }


def item_json(item: Item) -> dict[str, Any]:
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
            "last_seam": item.last_seam,
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


def failure_json(failure: Failure | None) -> dict[str, Any] | None:
    return None if failure is None else dataclasses.asdict(failure)


def _node(story: Story, ref: str) -> dict[str, Any]:
    below = [_node(story, child) for child in story.children.get(ref, ())]
    return {**item_json(story.items[ref]), "children": below}


def _number(item: Item) -> Any:
    return item.number if isinstance(item, CallItem) else item.ref

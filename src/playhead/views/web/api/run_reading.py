"""Handlers for one run, or two: columns, events, calls, payloads, text search, reports, comparisons."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from playhead.errors import TapeDamaged
from playhead.llm import LlmExchange, Part, ToolResult, ToolUse
from playhead.replay.modes.replay_options import read_options
from playhead.replay.replay_plan import read_plan
from playhead.replay.report.verdict import judge
from playhead.story import CallItem, Item, NoteItem, Story
from playhead.story.comparison.compare import compare
from playhead.story.event_filter import EventFilter, parse_range
from playhead.story.story_json import call_json, item_at
from playhead.tape.blobs import pull
from playhead.tape.reader import Tape, collector_paused
from playhead.views.web.api import listing
from playhead.views.web.api.api_responses import Problem, json_bytes, json_response, raw_json
from playhead.views.web.api.schema_checks import CheckedRequest
from playhead.views.web.api.story_cache import CachedStory
from playhead.views.web.outline import outline

if TYPE_CHECKING:
    from playhead.views.web.api.api_app import Desk


# Content types that a browser may display; everything else is a download.
SHOWN_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp", "text/plain")


def model(_: Desk, asked: CheckedRequest) -> Response:
    """Return summary and columns; 304 if the client has them. With `first`, an uncached run is answered in part."""
    cached: CachedStory = asked.stories["id"]
    if not cached.whole:
        return json_response(_beginning(cached))
    tag = etag(cached.stamp)
    if tag in asked.headers.get("if-none-match", ""):
        return Response(status_code=304, headers={"ETag": tag})
    if "model" not in cached.made:
        with collector_paused():
            cached.made["model"] = json_bytes(outline(cached.story))
    summary = json_bytes(listing.row_of(cached))
    body = b'{"summary":' + summary + b',"partial":null,"model":' + cached.made["model"] + b"}"
    return raw_json(body, headers={"ETag": tag, "Cache-Control": "private, no-cache"})


def _beginning(cached: CachedStory) -> dict[str, Any]:
    """Return a partial answer, with the number of events that it covers."""
    story = cached.story
    told_of = story.manifest.events
    partial = {"events": story.totals.events, "of": told_of if story.status != "running" else None}
    return {"summary": listing.row_of(cached), "partial": partial, "model": outline(story)}


def events(desk: Desk, asked: CheckedRequest) -> Response:
    """A page of the tape's own lines."""
    path = desk.stories.path(asked.values["id"])
    page = desk.pages.page(
        path,
        desk.stories.stamp(path),
        wanted_of(asked),
        after=asked.values["after"],
        limit=asked.values["limit"],
    )
    lines = b",".join(page.lines)
    return raw_json(b'{"events":[' + lines + b'],"next":' + json_bytes(page.next) + b"}")


def wanted_of(asked: CheckedRequest) -> EventFilter:
    values = asked.values
    return EventFilter(
        kinds=values["kind"],
        boundaries=frozenset(values["boundary"]),
        lanes=values["lane"],
        seqs=None if values["seq"] is None else parse_range(values["seq"]),
    )


def call(_: Desk, asked: CheckedRequest) -> Response:
    cached: CachedStory = asked.stories["id"]
    found = cached.calls.get(asked.values["n"])
    if found is None:
        raise Problem(
            404,
            f"There is no call {asked.values['n']} in run {asked.values['id']}.",
            f"Its calls are 1 to {len(cached.calls)}." if cached.calls else "It has none.",
        )
    return json_response(call_json(cached.story, found))


def item(_: Desk, asked: CheckedRequest) -> Response:
    cached: CachedStory = asked.stories["id"]
    found = item_at(cached.story, asked.values["ref"])
    if found is None:
        raise Problem(404, f"There is no item {asked.values['ref'][:80]!r} in this run.")
    return json_response(found)


def find_in(_: Desk, asked: CheckedRequest) -> Response:
    cached: CachedStory = asked.stories["id"]
    return json_response({"refs": find(cached.story, asked.values["q"])})


def blob(desk: Desk, asked: CheckedRequest) -> Response:
    """Return a payload, never with a content type that a browser would execute: tapes are untrusted."""
    path = desk.stories.path(asked.values["id"])
    digest = asked.values["hash"]
    try:
        payload = pull(path, digest)
    except TapeDamaged as error:
        raise Problem(404, str(error)) from None
    headers = {
        "Content-Disposition": f'attachment; filename="{digest[:16]}.bin"',
        "Cache-Control": "private, max-age=31536000, immutable",
    }
    media = asked.values["type"]
    if media is None:
        return Response(payload, headers=headers, media_type="application/octet-stream")
    return Response(payload, headers={**headers, "Content-Disposition": "inline"}, media_type=media)


def report(desk: Desk, asked: CheckedRequest) -> Response:
    """The verdict on a replay, judged again from both tapes."""
    path = desk.stories.path(asked.values["id"])
    plan = read_plan(path)
    replayed = Tape(path)
    original_id = replayed.manifest.replay_of or replayed.manifest.extra.get("forked_from")
    if plan is None or not isinstance(original_id, str):
        raise Problem(404, "This run is not a replay, so it has no report.")
    original = desk.stories.path(original_id)
    key = (path.name, desk.stories.stamp(path), desk.stories.stamp(original))
    made = desk.reports.get(key)
    if made is None:
        wishes = read_options(plan.live, plan.options)
        made = json_bytes(_plain(judge(Tape(original), replayed, wishes=wishes).as_json()))
        desk.reports[key] = made
    return raw_json(made)


def diff(_: Desk, asked: CheckedRequest) -> Response:
    left: CachedStory = asked.stories["a"]
    right: CachedStory = asked.stories["b"]
    key = f"diff {right.path.name} {right.stamp}"
    if key not in left.made:
        comparison = compare(left.story, right.story)
        members = dataclasses.asdict(comparison)
        extra = {
            "same": comparison.same,
            "first_difference": comparison.first_difference,
            "left_name": left.story.manifest.name,
            "right_name": right.story.manifest.name,
        }
        for old in [name for name in left.made if name.startswith("diff ")]:
            del left.made[old]  # one at a time: each is as large as the run
        left.made[key] = json_bytes({**members, **extra})
    return raw_json(left.made[key])


def etag(stamp: str) -> str:
    return f'"{hashlib.sha256(stamp.encode()).hexdigest()[:32]}"'


def _plain(value: Any) -> Any:
    """Convert members of a report that JSON cannot hold."""
    if isinstance(value, dict):
        return {str(name): _plain(member) for name, member in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(member) for member in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


MOST = 2000


def find(story: Story, text: str, limit: int = MOST) -> list[str]:
    """Return the refs in the order of the tape; case-insensitive."""
    wanted = text.strip().lower()
    if not wanted:
        return []
    found: list[str] = []
    for ref, item in story.items.items():
        if any(wanted in one.lower() for one in _texts(item)):
            found.append(ref)
            if len(found) >= limit:
                break
    return found


def _texts(item: Item) -> Iterator[str]:
    """Yield the texts of an item, cheap ones first: most searches are for a name or an error."""
    if isinstance(item, NoteItem):
        yield item.kind
        yield _flat(item.data)
        return
    yield item.name
    if item.failure is not None:
        yield f"{item.failure.type}: {item.failure.message}"
    if not isinstance(item, CallItem):
        yield from (item.purpose or "", _flat(item.input), _flat(item.value))
        yield from (f"{seam.name} {_flat(seam.value)}" for seam in item.seams)
        return
    if item.llm:
        for exchange in item.llm:
            yield from _exchange(exchange)
        return
    yield from (_flat(item.request), _flat(item.value), _flat(item.head))
    yield b"".join(piece.data for piece in item.pieces).decode("utf-8", "replace")


def _exchange(exchange: LlmExchange) -> Iterator[str]:
    """Yield the texts that are new in this exchange.

    A conversation is sent again with every request: searching all of it would find an early word in every later call.
    """
    request, response = exchange.request, exchange.response
    yield request.system or ""
    for message in reversed(request.messages):
        if message.role == "assistant":
            break
        yield from (_part(part) for part in message.parts)
    if response is not None:
        yield from (_part(part) for part in response.parts)


def _part(part: Part) -> str:
    if isinstance(part, ToolResult):
        return "\n".join(_part(one) for one in part.content)
    if isinstance(part, ToolUse):
        return f"{part.name} {_flat(part.arguments)}"
    return getattr(part, "text", "") or ""


def _flat(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)

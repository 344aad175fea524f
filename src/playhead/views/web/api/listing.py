"""List runs, mark them, and delete them. Knows the library; does not know how requests are read.

Also parses times as people write them: a day, a time, or how long ago.
"""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, get_args

from starlette.responses import Response

from playhead import clock
from playhead.errors import UsageError
from playhead.events import Status
from playhead.library import annotate as marking
from playhead.library.catalogue import entry_at
from playhead.library.change_feed import Backlog
from playhead.library.digest import of_story, sums_of
from playhead.library.fulltext import SCOPES
from playhead.library.library_json import found_json, page_json, stats_json
from playhead.library.retention import is_safe
from playhead.library.search import SORTS, FoundRun, Search, query
from playhead.library.stats import BYS, stats
from playhead.views.web.api.api_responses import Problem, json_response
from playhead.views.web.api.schema_checks import CheckedRequest
from playhead.views.web.api.story_cache import CachedStory

if TYPE_CHECKING:
    from playhead.views.web.api.api_app import Desk


STATUSES: tuple[Status, ...] = get_args(Status)
ORDERS = tuple(f"{turned}{one}" for one in SORTS for turned in ("", "-"))
__all__ = [
    "BYS",
    "ORDERS",
    "SCOPES",
    "STATUSES",
    "change",
    "delete",
    "page",
    "row_of",
    "statistics",
]


def page(desk: Desk, asked: CheckedRequest) -> Response:
    values = asked.values
    wanted = search_of(asked, sort=values["sort"], limit=values["limit"], cursor=values["cursor"])
    backlog = desk.catching_up.wait(read=wanted.needs_tapes)
    found = query(desk.home, wanted, prices=desk.prices, updated=True, complete=backlog is None)
    shared = desk.stories.shared
    members = {**page_json(found), "remote": None if shared is None else shared.url}
    return _as_far_as_known(members, backlog)


def _as_far_as_known(members: dict[str, Any], backlog: Backlog | None) -> Response:
    """Mark an answer from an incomplete catalogue, and say when to try again."""
    if backlog is None:
        return json_response({**members, "indexing": None})
    indexing = {"done": backlog.done, "of": backlog.of}
    return json_response({**members, "indexing": indexing}, headers={"Retry-After": "1"})


def search_of(asked: CheckedRequest, **more: Any) -> Search:
    values, now = asked.values, clock.wall_ns()
    return Search(
        text=(values["q"] or "").strip(),
        scope=values["in"],
        statuses=frozenset(values["status"]),
        models=_given(values["model"]),
        tools=_given(values["tool"]),
        tags=tuple(tag_of(one) for one in values["tag"]),
        name=values["name"] or None,
        project=values["project"] or None,
        min_cost=values["min_cost"],
        failed_turns=values["failed_turns"] == "true",
        replays=values["replays"] != "false",
        max_cost=values["max_cost"],
        since_ns=None if not values["since"] else parse_moment(values["since"], now),
        until_ns=None if not values["until"] else parse_moment(values["until"], now),
        **more,
    )


def _given(value: str | None) -> tuple[str, ...]:
    return (value,) if value else ()


def tag_of(text: str) -> tuple[str, str | None]:
    key, equals, value = text.partition("=")
    return key, value if equals else None


def row_of(cached: CachedStory) -> dict[str, Any]:
    """The row of a run whose story is known."""
    if "names" not in cached.made:
        cached.made["names"] = sorted({(kind, name) for kind, name, _ in sums_of(cached.story)})
    names = cached.made["names"]
    found = FoundRun(
        entry=entry_at(cached.path),
        summary=of_story(cached.story),
        models=tuple(name for kind, name in names if kind == "model"),
        tools=tuple(name for kind, name in names if kind == "tool"),
    )
    return found_json(found)


def change(desk: Desk, asked: CheckedRequest) -> Response:
    cached: CachedStory = asked.stories["id"]
    said, run_id = asked.body, cached.path.name
    home = cached.path.parent.parent  # the cache of the shared store is a store of its own
    if "name" in said:
        marking.rename(home, run_id, said["name"], by=asked.who.name)
    if "tags" in said:
        marking.set_tags(home, run_id, said["tags"], by=asked.who.name)
    if "note" in said:
        marking.set_note(home, run_id, said["note"], by=asked.who.name)
    if "keep" in said:
        marking.set_keep(home, run_id, said["keep"], by=asked.who.name)
    desk.stories.send_marks(cached.path)
    return json_response(row_of(cached))


def delete(desk: Desk, asked: CheckedRequest) -> Response:
    path = desk.stories.path_here(asked.values["id"], "deleted")
    entry = entry_at(path)
    if is_safe(entry):
        is_running = entry.status == "running"
        why = "is still running" if is_running else "is kept or golden"
        how = (
            "Delete it when it has ended."
            if is_running
            else "Remove the keep flag, or the tag `golden`."
        )
        raise Problem(409, f"{path.name} {why}: it is not deleted.", how)
    marking.remove(desk.home, path.name)
    desk.stories.forget(path.name)
    return json_response({"id": path.name})


def statistics(desk: Desk, asked: CheckedRequest) -> Response:
    backlog = desk.catching_up.wait(read=True)
    found = stats(
        desk.home,
        by=asked.values["by"],
        wanted=search_of(asked),
        prices=desk.prices,
        updated=True,
    )
    members = stats_json(found)
    # `failures` of runs, whatever they are grouped by.
    rows = [{**group, "failures": group["failed_runs"]} for group in members.pop("groups")]
    return _as_far_as_known({**members, "rows": rows}, backlog)


_AGO = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)(s|m|h|d|w)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def parse_moment(text: str, now_ns: int) -> int:
    """Parse `2026-11-15`, `2026-11-15T07:11:05Z` or `2h` (ago) into nanoseconds since 1970. Default zone: UTC."""
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return max(0, now_ns - round(float(ago[1]) * _SECONDS[ago[2]] * 1e9))
    try:
        when = datetime.fromisoformat(text)
        if when.tzinfo is None:
            when = when.replace(tzinfo=timezone.utc)
        return max(0, round(when.timestamp() * 1e6) * 1000)
    except (ValueError, OverflowError):
        raise UsageError(
            f"{text[:80]!r} is not a time; expected 2026-11-15, 2026-11-15T07:11:05Z or 2h."
        ) from None

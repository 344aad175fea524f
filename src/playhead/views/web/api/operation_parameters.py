"""Parameters and request bodies of the API operations. Pure."""

from __future__ import annotations

from typing import Any

from playhead.events import BOUNDARIES
from playhead.views.web.api import event_pages as cursor
from playhead.views.web.api import listing
from playhead.views.web.api import run_sharing as sharing
from playhead.views.web.api.schema_checks import Parameter, Schema

_RUN_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
RUN: Schema = {"type": "string", "pattern": _RUN_ID, "description": "the id of a run"}


def text(name: str, says: str, **more: Any) -> Parameter:
    required = more.pop("required", False)
    schema = {"type": "string", "maxLength": 256, **more}
    return Parameter(name=name, says=says, schema=schema, required=required)


def texts(name: str, says: str, **more: Any) -> Parameter:
    items = {"type": "string", "maxLength": 256, **more}
    return Parameter(name=name, says=says, schema={"type": "array", "items": items})


def number(name: str, says: str) -> Parameter:
    return Parameter(name=name, says=says, schema={"type": "number", "minimum": 0})


def whole_number(name: str, says: str, low: int, high: int, default: int) -> Parameter:
    schema = {"type": "integer", "minimum": low, "maximum": high, "default": default}
    return Parameter(name=name, says=says, schema=schema)


ID = Parameter(name="id", says="The run, by its full id.", schema=RUN, place="path")
FILTERS = (
    text("q", "Only runs that contain these words."),
    text("in", "Which texts to search.", enum=list(listing.SCOPES)),
    texts("status", "Only runs with this status.", enum=list(listing.STATUSES)),
    text("model", "Only runs that used this model."),
    text("tool", "Only runs that called this tool."),
    texts("tag", "Only runs with this tag: `env` or `env=ci`.", minLength=1),
    text("name", "Only runs with this name; * and ? are wildcards."),
    text("project", "Only runs of this project's folder.", maxLength=4096),
    text("failed_turns", "`true`: only runs with turns that failed.", enum=["true", "false"]),
    text("replays", "`false`: no replays, except accepted ones.", enum=["true", "false"]),
    number("min_cost", "Minimum cost in US dollars."),
    number("max_cost", "Maximum cost in US dollars."),
    text(
        "since",
        "Only runs started at or after this time: 2026-11-15, 2026-11-15T07:11:05Z, or 2h (ago).",
    ),
    text("until", "Only runs started before this time."),
)
EVENTS = (
    text(
        "after", "Continue after this position: `next` of the previous page, or a number of events to skip.",
        pattern=cursor.PATTERN, maxLength=cursor.LONGEST,
    ),
    whole_number("limit", "Maximum number of results.", 1, 1000, 200),
    texts("kind", "Only these kinds: `call`, `turn.*`."),
    texts("lane", "Only these lanes: `main/2*`."),
    texts("boundary", "Only calls of this boundary, with their chunks and outcomes.",
           enum=list(BOUNDARIES)),
    text("seq", "Only events with these seqs: 10..20, 10.., 17, or SEGMENT:10..20."),
)  # fmt: skip
MARKS: Schema = {
    "type": "object",
    "additionalProperties": False,
    "minProperties": 1,
    "properties": {
        "tags": {
            "type": "object",
            "maxProperties": 64,
            "propertyNames": {"minLength": 1, "maxLength": 128},
            "additionalProperties": {"type": "string", "maxLength": 1024},
        },
        "note": {"type": "string", "maxLength": 16_000},
        "keep": {"type": "boolean"},
        "name": {"type": "string", "minLength": 1, "maxLength": 200},
    },
}
COMMENT: Schema = {
    "type": "object",
    "additionalProperties": False,
    "required": ["text"],
    "properties": {"text": {"type": "string", "minLength": 1, "maxLength": 16_000}},
}
REPLAY: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "faults": {
            "type": "array",
            "maxItems": 16,
            "items": {"type": "string", "maxLength": 200},
            "description": "failures to inject: llm:3=529",
        }
    },
}
SHARE: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "expires_s": {
            "type": "integer",
            "minimum": 60,
            "maximum": sharing.LONGEST_S,
            "description": "seconds until the link expires; a week by default",
        }
    },
}

"""The table of API operations: parameters, responses, handlers. OpenAPI document and request checks use it."""

from __future__ import annotations

from typing import Any

from playhead.events import BOUNDARIES
from playhead.views.web.api import event_pages as cursor
from playhead.views.web.api import file_reading, following, listing
from playhead.views.web.api import (
    replay_jobs as replaying,
)
from playhead.views.web.api import (
    run_reading as reading,
)
from playhead.views.web.api.openapi_document import NOT_THERE, REFUSED, SCHEMAS, TEXT, answer, plain
from playhead.views.web.api.schema_checks import AnswerSchema, Operation, Parameter, Schema

__all__ = ["OPERATIONS", "SCHEMAS"]

_RUN_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
_RUN: Schema = {"type": "string", "pattern": _RUN_ID, "description": "the id of a run"}


def _text(name: str, says: str, **more: Any) -> Parameter:
    required = more.pop("required", False)
    schema = {"type": "string", "maxLength": 256, **more}
    return Parameter(name=name, says=says, schema=schema, required=required)


def _texts(name: str, says: str, **more: Any) -> Parameter:
    items = {"type": "string", "maxLength": 256, **more}
    return Parameter(name=name, says=says, schema={"type": "array", "items": items})


def _number(name: str, says: str) -> Parameter:
    return Parameter(name=name, says=says, schema={"type": "number", "minimum": 0})


def _whole(name: str, says: str, low: int, high: int, default: int) -> Parameter:
    schema = {"type": "integer", "minimum": low, "maximum": high, "default": default}
    return Parameter(name=name, says=says, schema=schema)


_ID = Parameter(name="id", says="The run, by its full id.", schema=_RUN, place="path")
_FILTERS = (
    _text("q", "Only runs that contain these words."),
    _text("in", "Which texts to search.", enum=list(listing.SCOPES)),
    _texts("status", "Only runs with this status.", enum=list(listing.STATUSES)),
    _text("model", "Only runs that used this model."),
    _text("tool", "Only runs that called this tool."),
    _texts("tag", "Only runs with this tag: `env` or `env=ci`.", minLength=1),
    _text("name", "Only runs with this name; * and ? are wildcards."),
    _text("project", "Only runs of this project's folder.", maxLength=4096),
    _text("failed_turns", "`true`: only runs with turns that failed.", enum=["true", "false"]),
    _text("replays", "`false`: no replays, but for accepted ones.", enum=["true", "false"]),
    _number("min_cost", "Minimum cost in US dollars."),
    _number("max_cost", "Maximum cost in US dollars."),
    _text(
        "since",
        "Only runs started at or after this time: 2026-11-15, 2026-11-15T07:11:05Z, or 2h (ago).",
    ),
    _text("until", "Only runs started before this time."),
)
_EVENTS = (
    _text(
        "after", "Continue after this position: `next` of the previous page, or a number of events to skip.",
        pattern=cursor.PATTERN, maxLength=cursor.LONGEST,
    ),
    _whole("limit", "Maximum number of results.", 1, 1000, 200),
    _texts("kind", "Only these kinds: `call`, `turn.*`."),
    _texts("lane", "Only these lanes: `main/2*`."),
    _texts("boundary", "Only calls of this boundary, with their chunks and outcomes.",
           enum=list(BOUNDARIES)),
    _text("seq", "Only events with these seqs: 10..20, 10.., 17, or SEGMENT:10..20."),
)  # fmt: skip
_MARKS: Schema = {
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
_REPLAY: Schema = {
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

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        id="list",
        method="GET",
        path="/api/recordings",
        says="List runs, a page at a time.",
        parameters=(
            *_FILTERS,
            _text("sort", "Sort key; a leading minus reverses the order.", enum=list(listing.ORDERS),
                  default="-started"),
            _whole("limit", "Maximum number of results.", 1, 500, 50),
            _text("cursor", "Continue after this position: `next` of the previous page.", maxLength=2048),
        ),
        answers={200: answer("Runs", "A page."), **REFUSED},
        shared=True,
        handle=listing.page,
    ),
    Operation(
        id="recording",
        method="GET",
        path="/api/recordings/{id}",
        says="One run: its row of the list, and its items as columns.",
        parameters=(
            _ID,
            Parameter(
                name="first",
                says="If the run is not cached, answer from this many events only; see `partial`.",
                schema={"type": "integer", "minimum": 1, "maximum": 100_000},
            ),
        ),
        needs=("id",),
        answers={
            200: answer("Recording", "The run."),
            304: AnswerSchema(says="Not modified."),
            **NOT_THERE,
        },
        handle=reading.model,
    ),
    Operation(
        id="change",
        method="PATCH",
        path="/api/recordings/{id}",
        says="Set tags (replacing all), note, name, or the keep flag.",
        parameters=(_ID,),
        needs=("id",),
        body=_MARKS,
        body_required=True,
        answers={
            200: answer("Run", "The changed run."),
            **NOT_THERE,
            415: AnswerSchema(says="The body is not JSON."),
        },
        handle=listing.change,
    ),
    Operation(
        id="delete",
        method="DELETE",
        path="/api/recordings/{id}",
        says="Delete a run. Running, kept and golden runs are refused.",
        parameters=(_ID,),
        answers={200: answer("Changed", "The run is deleted."), **NOT_THERE},
        handle=listing.delete,
    ),
    Operation(
        id="events",
        method="GET",
        path="/api/recordings/{id}/events",
        says="Events of the tape. As `text/event-stream`: existing events, then new ones.",
        parameters=(_ID, *_EVENTS),
        answers={
            200: answer("Events", "A page."),
            **NOT_THERE,
            429: AnswerSchema(says="Too many open streams."),
        },
        handle=reading.events,
        stream=following.follow_run,
    ),
    Operation(
        id="call",
        method="GET",
        path="/api/recordings/{id}/calls/{n}",
        says="One call with its contents: request, answer, chunks, decoded exchanges.",
        parameters=(
            _ID,
            Parameter(
                name="n", says="The number of the call.", place="path",
                schema={"type": "integer", "minimum": 1, "maximum": 10**9},
            ),
        ),
        needs=("id",),
        answers={200: plain("The call."), **NOT_THERE},
        handle=reading.call,
    ),
    Operation(
        id="item",
        method="GET",
        path="/api/recordings/{id}/items/{ref}",
        says="One item with its contents: a turn, a call, an event.",
        parameters=(
            _ID,
            Parameter(
                name="ref", says="The reference of the item: SEGMENT:SEQ.", place="path",
                schema={"type": "string", "minLength": 1, "maxLength": 200},
            ),
        ),
        needs=("id",),
        answers={200: plain("The item."), **NOT_THERE},
        handle=reading.item,
    ),
    Operation(
        id="find",
        method="GET",
        path="/api/recordings/{id}/find",
        says="Find the items of a run that contain a text.",
        parameters=(_ID, _text("q", "The text.", required=True, minLength=1)),
        needs=("id",),
        answers={200: answer("Refs", "References of the items."), **NOT_THERE},
        handle=reading.find_in,
    ),
    Operation(
        id="blob",
        method="GET",
        path="/api/recordings/{id}/blobs/{hash}",
        says="A payload that is stored outside the tape's lines.",
        parameters=(
            _ID,
            Parameter(
                name="hash", says="The SHA-256 of the payload.", place="path",
                schema={"type": "string", "pattern": "^[0-9a-f]{64}$"},
            ),
            _text("type", "Content type of the answer.", enum=list(reading.SHOWN_TYPES)),
        ),
        answers={200: AnswerSchema(says="The payload.", media="application/octet-stream"), **NOT_THERE},
        handle=reading.blob,
    ),
    Operation(
        id="files",
        method="GET",
        path="/api/recordings/{id}/files",
        says="The files that a run changed, step by step. The form of `playhead files RUN --json`.",
        parameters=(
            _ID,
            Parameter(
                name="everything",
                says="List the files below `.git`, too; otherwise they are counted in `git_files`.",
                schema={"type": "boolean", "default": False},
            ),
        ),
        needs=("id",),
        answers={200: answer("Files", "The changes."), **NOT_THERE},
        handle=file_reading.files,
    ),
    Operation(
        id="version",
        method="GET",
        path="/api/recordings/{id}/files/{version}",
        says="One version of a changed file, as text.",
        parameters=(
            _ID,
            Parameter(
                name="version", says="The id of the version: `before.id` or `after.id` of a change.",
                place="path",
                schema={"type": "string", "pattern": file_reading.VERSION_PATTERN, "maxLength": 8200},
            ),
        ),
        needs=("id",),
        answers={200: answer("FileVersion", "The version."), **NOT_THERE},
        handle=file_reading.version,
    ),
    Operation(
        id="report",
        method="GET",
        path="/api/recordings/{id}/report",
        says="The report of a replay.",
        parameters=(_ID,),
        answers={200: plain("The report."), **NOT_THERE},
        handle=reading.report,
    ),
    Operation(
        id="replay",
        method="POST",
        path="/api/recordings/{id}/replay",
        says="Replay a run; only if the server was started with permission to.",
        parameters=(_ID,),
        body=_REPLAY,
        patience_s=replaying.PATIENCE_S,
        answers={
            200: plain("The report."),
            **NOT_THERE,
            415: AnswerSchema(says="The body is not JSON."),
            429: AnswerSchema(says="Too many replays at once."),
        },
        handle=replaying.replay,
    ),
    Operation(
        id="diff",
        method="GET",
        path="/api/diff",
        says="Compare two runs step by step.",
        parameters=(
            Parameter(name="a", says="The first run.", schema=_RUN, required=True),
            Parameter(name="b", says="The second run.", schema=_RUN, required=True),
        ),
        needs=("a", "b"),
        answers={200: plain("The comparison."), **NOT_THERE},
        handle=reading.diff,
    ),
    Operation(
        id="stats",
        method="GET",
        path="/api/stats",
        says="Runs, failures, tokens, cost and latency, grouped by a key.",
        parameters=(
            _text("by", "The key.", enum=list(listing.BYS), default="day"),
            *_FILTERS,
        ),
        answers={200: answer("Stats", "One row per key."), **REFUSED},
        shared=True,
        handle=listing.statistics,
    ),
    Operation(
        id="live",
        method="GET",
        path="/api/live",
        says="A message for each change of the list of runs.",
        answers={
            200: AnswerSchema(says="An endless stream.", schema=TEXT, media="text/event-stream"),
            **REFUSED,
            429: AnswerSchema(says="Too many open streams."),
        },
        stream=following.follow_list,
    ),
    Operation(
        id="health",
        method="GET",
        path="/healthz",
        says="Health check. Needs no token.",
        answers={200: plain("The server is running."), 421: REFUSED[421]},
    ),
    Operation(
        id="openapi",
        method="GET",
        path="/api/openapi.json",
        says="This document.",
        answers={200: plain("OpenAPI 3.1."), **REFUSED},
    ),
)  # fmt: skip

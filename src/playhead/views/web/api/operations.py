"""Every operation of the API: what it takes, what it gives, who does it. The OpenAPI document and the
checks of requests are both made from this table.
"""

from __future__ import annotations

from typing import Any

from playhead.events import BOUNDARIES
from playhead.views.web.api import event_pages as cursor
from playhead.views.web.api import following, listing
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
    _text("q", "Only runs that hold these words."),
    _text("in", "Where to look for them.", enum=list(listing.SCOPES)),
    _texts("status", "Only runs that ended so.", enum=list(listing.STATUSES)),
    _text("model", "Only runs that asked this model."),
    _text("tool", "Only runs that called this tool."),
    _texts("tag", "Only runs with this tag: `env` or `env=ci`.", minLength=1),
    _text("name", "Only runs of this name; * and ? are wildcards."),
    _text("project", "Only runs of this project's folder.", maxLength=4096),
    _number("min_cost", "Only runs that cost at least so many dollars."),
    _number("max_cost", "Only runs that cost at most so many dollars."),
    _text(
        "since", "Only runs begun at or after this: 2026-11-15, 2026-11-15T07:11:05Z, or 2h ago."
    ),
    _text("until", "Only runs begun before this, likewise."),
)
_EVENTS = (
    _text(
        "after", "Go on from there: `next` of the page before, or a number of events.",
        pattern=cursor.PATTERN, maxLength=cursor.LONGEST,
    ),
    _whole("limit", "At most so many.", 1, 1000, 200),
    _texts("kind", "Only these kinds: `call`, `turn.*`."),
    _texts("lane", "Only these lanes: `main/2*`."),
    _texts("boundary", "Only calls of this boundary, with their chunks and outcomes.",
           enum=list(BOUNDARIES)),
    _text("seq", "Only these: 10..20, 10.., 17, or SEGMENT:10..20."),
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
        says="Runs that fit, a page at a time.",
        parameters=(
            *_FILTERS,
            _text("sort", "By this; a minus before it turns it round.", enum=list(listing.ORDERS),
                  default="-started"),
            _whole("limit", "At most so many.", 1, 500, 50),
            _text("cursor", "Go on from there: `next` of the page before.", maxLength=2048),
        ),
        answers={200: answer("Runs", "A page."), **REFUSED},
        shared=True,
        handle=listing.page,
    ),
    Operation(
        id="recording",
        method="GET",
        path="/api/recordings/{id}",
        says="One run: its row of the list, and its model as columns.",
        parameters=(
            _ID,
            Parameter(
                name="first",
                says="If the run has not been read yet, its first so many events will do: see `partial`.",
                schema={"type": "integer", "minimum": 1, "maximum": 100_000},
            ),
        ),
        needs=("id",),
        answers={
            200: answer("Recording", "The run."),
            304: AnswerSchema(says="As you have it."),
            **NOT_THERE,
        },
        handle=reading.model,
    ),
    Operation(
        id="change",
        method="PATCH",
        path="/api/recordings/{id}",
        says="Set tags (all of them at once), note, name, or whether it is kept.",
        parameters=(_ID,),
        needs=("id",),
        body=_MARKS,
        body_required=True,
        answers={
            200: answer("Run", "The run as it is now."),
            **NOT_THERE,
            415: AnswerSchema(says="The body is no JSON."),
        },
        handle=listing.change,
    ),
    Operation(
        id="delete",
        method="DELETE",
        path="/api/recordings/{id}",
        says="Delete a run; one that goes on, is kept or golden is not deleted.",
        parameters=(_ID,),
        answers={200: answer("Changed", "It is gone."), **NOT_THERE},
        handle=listing.delete,
    ),
    Operation(
        id="events",
        method="GET",
        path="/api/recordings/{id}/events",
        says="Events as they stand on the tape; as `text/event-stream`: those, then what comes.",
        parameters=(_ID, *_EVENTS),
        answers={
            200: answer("Events", "A page."),
            **NOT_THERE,
            429: AnswerSchema(says="Too many are following."),
        },
        handle=reading.events,
        stream=following.follow_run,
    ),
    Operation(
        id="call",
        method="GET",
        path="/api/recordings/{id}/calls/{n}",
        says="One call whole: request, answer, chunks, what was decoded of it.",
        parameters=(
            _ID,
            Parameter(
                name="n", says="Its number.", place="path",
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
        says="Any item whole: a turn, a call, a note.",
        parameters=(
            _ID,
            Parameter(
                name="ref", says="Its name: SEGMENT:SEQ.", place="path",
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
        says="Items of a run that hold a text anywhere.",
        parameters=(_ID, _text("q", "The text.", required=True, minLength=1)),
        needs=("id",),
        answers={200: answer("Refs", "Their names."), **NOT_THERE},
        handle=reading.find_in,
    ),
    Operation(
        id="blob",
        method="GET",
        path="/api/recordings/{id}/blobs/{hash}",
        says="A payload that was too large for its line.",
        parameters=(
            _ID,
            Parameter(
                name="hash", says="Its SHA-256.", place="path",
                schema={"type": "string", "pattern": "^[0-9a-f]{64}$"},
            ),
            _text("type", "Show it as that.", enum=list(reading.SHOWN_TYPES)),
        ),
        answers={200: AnswerSchema(says="Its bytes.", media="application/octet-stream"), **NOT_THERE},
        handle=reading.blob,
    ),
    Operation(
        id="report",
        method="GET",
        path="/api/recordings/{id}/report",
        says="The verdict on a replay.",
        parameters=(_ID,),
        answers={200: plain("The report."), **NOT_THERE},
        handle=reading.report,
    ),
    Operation(
        id="replay",
        method="POST",
        path="/api/recordings/{id}/replay",
        says="Run the recorded command against its tape; only where the server allows it.",
        parameters=(_ID,),
        body=_REPLAY,
        patience_s=replaying.PATIENCE_S,
        answers={
            200: plain("The report."),
            **NOT_THERE,
            415: AnswerSchema(says="The body is no JSON."),
            429: AnswerSchema(says="Too many at once."),
        },
        handle=replaying.replay,
    ),
    Operation(
        id="diff",
        method="GET",
        path="/api/diff",
        says="Two runs step by step.",
        parameters=(
            Parameter(name="a", says="One run.", schema=_RUN, required=True),
            Parameter(name="b", says="The other.", schema=_RUN, required=True),
        ),
        needs=("a", "b"),
        answers={200: plain("The comparison."), **NOT_THERE},
        handle=reading.diff,
    ),
    Operation(
        id="stats",
        method="GET",
        path="/api/stats",
        says="Runs, failures, tokens, cost and latency, by a key.",
        parameters=(
            _text("by", "The key.", enum=list(listing.BYS), default="day"),
            *_FILTERS,
        ),
        answers={200: answer("Stats", "A row for each key."), **REFUSED},
        shared=True,
        handle=listing.statistics,
    ),
    Operation(
        id="live",
        method="GET",
        path="/api/live",
        says="A message whenever the list of runs has changed.",
        answers={
            200: AnswerSchema(says="A stream that does not end.", schema=TEXT, media="text/event-stream"),
            **REFUSED,
            429: AnswerSchema(says="Too many are following."),
        },
        stream=following.follow_list,
    ),
    Operation(
        id="health",
        method="GET",
        path="/healthz",
        says="Whether the server is there. Needs no token.",
        answers={200: plain("It is."), 421: REFUSED[421]},
    ),
    Operation(
        id="openapi",
        method="GET",
        path="/api/openapi.json",
        says="This document.",
        answers={200: plain("OpenAPI 3.1."), **REFUSED},
    ),
)  # fmt: skip

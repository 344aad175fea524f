"""The shapes of what comes back, as JSON Schema: what a program may rely on. Data only."""

from __future__ import annotations

from typing import Any

from playhead.views.web.api.schema_checks import Answer, Schema

TEXT: Schema = {"type": "string"}
NUMBER_OR_NULL: Schema = {"type": ["number", "null"]}
COUNT_OR_NULL: Schema = {"type": ["integer", "null"]}
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
TEXTS: Schema = {"type": "array", "items": {"type": "string"}}
ANYTHING: Schema = {"type": "object"}


def _object(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members, "required": list(members)}


# Not null: the catalogue is being made, and only what has been read so far is in this answer.
INDEXING: Schema = {
    **_object(done={"type": "integer"}, of={"type": "integer"}),
    "type": ["object", "null"],
    "description": "Not null: only so many runs are known yet; ask again after `Retry-After` seconds.",
}

SCHEMAS: dict[str, Schema] = {
    "Error": _object(error=_object(reason=TEXT, next=TEXT_OR_NULL)),
    "Run": _object(
        id=TEXT,
        name=TEXT,
        status={"type": "string", "enum": ["running", "ok", "failed", "interrupted"]},
        started_at=TEXT,
        duration_s=NUMBER_OR_NULL,
        command={"type": "array"},
        tags=ANYTHING,
        note=TEXT,
        kept={"type": "boolean"},
        golden={"type": "boolean"},
        level=TEXT,
        project=TEXT,
        replay_of=TEXT_OR_NULL,
        models=TEXTS,
        tools=TEXTS,
        llm_calls={"type": "integer"},
        tool_calls={"type": "integer"},
        calls={"type": "integer"},
        tokens=COUNT_OR_NULL,
        cost_usd=NUMBER_OR_NULL,
        failure=TEXT_OR_NULL,
    ),
    "Runs": _object(
        runs={"type": "array", "items": {"$ref": "#/components/schemas/Run"}},
        total={"type": "integer"},
        next=TEXT_OR_NULL,
        indexing=INDEXING,
    ),
    "Recording": _object(
        summary={"$ref": "#/components/schemas/Run"},
        partial={
            **_object(events={"type": "integer"}, of=COUNT_OR_NULL),
            "type": ["object", "null"],
            "description": "Not null: only so many events of the tape are in this answer.",
        },
        model=ANYTHING,
    ),
    "Events": _object(events={"type": "array", "items": ANYTHING}, next=TEXT_OR_NULL),
    "Refs": _object(refs=TEXTS),
    "Stats": _object(
        by=TEXT,
        rows={"type": "array", "items": ANYTHING},
        total=ANYTHING,
        most_failing_tools={"type": "array"},
        indexing=INDEXING,
    ),
    "Changed": _object(id=TEXT),
}


def answer(name: str, says: str) -> Answer:
    return Answer(says=says, schema={"$ref": f"#/components/schemas/{name}"})


def plain(says: str) -> Answer:
    return Answer(says=says, schema=ANYTHING)


# What may happen to every request, and to those about one run.
REFUSED: dict[int, Answer] = {
    400: Answer(says="The request is not as described."),
    401: Answer(says="The token is missing or wrong."),
    403: Answer(says="Not from another site's page."),
    409: Answer(says="The tape or the store is not in a state for that."),
    413: Answer(says="The body is too large."),
    421: Answer(says="The server does not go by that name."),
    503: Answer(says="It took too long."),
}
NOT_THERE: dict[int, Answer] = {**REFUSED, 404: Answer(says="There is no such thing.")}

"""The OpenAPI 3.1 document: the table of operations, and JSON Schemas of the responses. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from playhead._version import __version__
from playhead.views.web.access_tokens import ROLES
from playhead.views.web.api.schema_checks import AnswerSchema, Operation, Parameter, Schema

_ERROR = {"$ref": "#/components/schemas/Error"}


def document(
    operations: Iterable[Operation], schemas: Mapping[str, Schema], root_path: str = ""
) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Playhead",
            "version": __version__,
            "description": "The runs of a library: lists, models, events, calls, comparisons.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": root_path or "/"}],
        "paths": paths,
        "components": {
            "schemas": dict(schemas),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        # A server on loopback may run without a token.
        "security": [{}, {"token": []}],
    }


def _operation(operation: Operation) -> dict[str, Any]:
    made: dict[str, Any] = {
        "operationId": operation.id,
        "summary": operation.says,
        "parameters": [_parameter(one) for one in operation.parameters],
        "responses": {
            str(status): _answer(status, one) for status, one in operation.answers.items()
        },
    }
    if operation.stream is not None and 200 in operation.answers:
        content = made["responses"]["200"]["content"]
        content["text/event-stream"] = {"schema": {"type": "string"}}
    if operation.body is not None:
        made["requestBody"] = {
            "required": operation.body_required,
            "content": {"application/json": {"schema": dict(operation.body)}},
        }
    return made


def _parameter(one: Parameter) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": one.name,
        "in": one.place,
        "description": one.says,
        "required": one.required or one.place == "path",
        "schema": dict(one.schema),
    }
    if one.schema["type"] == "array":
        made |= {"style": "form", "explode": True}
    return made


def _answer(status: int, answer: AnswerSchema) -> dict[str, Any]:
    if status in (204, 304):
        return {"description": answer.says}
    schema = dict(answer.schema) if answer.schema or status < 400 else _ERROR
    return {"description": answer.says, "content": {answer.media: {"schema": schema}}}


TEXT: Schema = {"type": "string"}
NUMBER_OR_NULL: Schema = {"type": ["number", "null"]}
COUNT_OR_NULL: Schema = {"type": ["integer", "null"]}
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
TEXTS: Schema = {"type": "array", "items": {"type": "string"}}
ANYTHING: Schema = {"type": "object"}


def _object(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members, "required": list(members)}


# Not null: the catalogue is being built, and the answer is incomplete.
INDEXING: Schema = {
    **_object(done={"type": "integer"}, of={"type": "integer"}),
    "type": ["object", "null"],
    "description": "Not null: only this many runs are indexed yet; ask again after `Retry-After` seconds.",
}

# A file before or after a change; null: it did not exist.
_ENTRY: Schema = {
    **_object(mode=TEXT, size={"type": "integer"}, id=TEXT),
    "type": ["object", "null"],
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
        comments={"type": "array", "items": {"$ref": "#/components/schemas/Comment"}},
        authors=ANYTHING,
        kept={"type": "boolean"},
        golden={"type": "boolean"},
        level=TEXT,
        project=TEXT,
        replay_of=TEXT_OR_NULL,
        verdict=TEXT_OR_NULL,
        ending=_object(word=TEXT, tone=TEXT),
        models=TEXTS,
        tools=TEXTS,
        llm_calls={"type": "integer"},
        tool_calls={"type": "integer"},
        calls={"type": "integer"},
        tokens=COUNT_OR_NULL,
        cost_usd=NUMBER_OR_NULL,
        failure=TEXT_OR_NULL,
    ),
    "Comment": _object(id=TEXT, by=TEXT, at=TEXT, text=TEXT),
    "Comments": _object(
        comments={"type": "array", "items": {"$ref": "#/components/schemas/Comment"}},
        me=TEXT,
        may_comment={"type": "boolean"},
        may_remove_all={"type": "boolean"},
    ),
    "Runs": _object(
        runs={"type": "array", "items": {"$ref": "#/components/schemas/Run"}},
        total={"type": "integer"},
        has_more={"type": "boolean", "description": "There are more matches than `total`."},
        next=TEXT_OR_NULL,
        remote={**TEXT_OR_NULL, "description": "The shared store whose runs `/api/remote` lists."},
        indexing=INDEXING,
    ),
    "SharedRuns": _object(
        remote=TEXT_OR_NULL,
        runs={"type": "array", "items": ANYTHING},
        total={"type": "integer"},
        next=TEXT_OR_NULL,
        problems=TEXTS,
    ),
    "Recording": _object(
        summary={"$ref": "#/components/schemas/Run"},
        partial={
            **_object(events={"type": "integer"}, of=COUNT_OR_NULL),
            "type": ["object", "null"],
            "description": "Not null: the answer covers only this many events of the tape.",
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
    "Files": _object(
        run=TEXT,
        workspaces={"type": "array", "items": ANYTHING},
        gaps={"type": "integer"},
        changes_left_out={"type": "integer"},
        steps={"type": "array", "items": {"$ref": "#/components/schemas/FileStep"}},
    ),
    "FileStep": _object(
        ref=TEXT,
        step={"type": "integer"},
        calls={"type": "array", "items": {"type": "integer"}},
        call_refs=TEXTS,
        between_calls={"type": "boolean"},
        after=COUNT_OR_NULL,
        llm=COUNT_OR_NULL,
        llm_ref=TEXT_OR_NULL,
        at_us={
            "type": "integer",
            "description": "Microseconds on the clock of the run, which starts with the agent.",
        },
        workspace={"type": "integer"},
        gaps={"type": "integer"},
        git_files={"type": "integer"},
        changes_left_out={"type": "integer"},
        changes={"type": "array", "items": {"$ref": "#/components/schemas/FileChange"}},
    ),
    "FileChange": _object(
        path=TEXT,
        how={"type": "string", "enum": ["added", "deleted", "modified", "mode"]},
        added=COUNT_OR_NULL,
        removed=COUNT_OR_NULL,
        before=_ENTRY,
        after=_ENTRY,
    ),
    "FileVersion": _object(
        id=TEXT,
        content={
            "type": "string",
            "enum": ["text", "link", "binary", "too large", "not stored", "missing"],
        },
        size={"type": "integer"},
        text=TEXT_OR_NULL,
    ),
    "Changed": _object(id=TEXT),
    "ShareLink": _object(run=TEXT, path=TEXT, token=TEXT, expires_at=TEXT),
    "Me": _object(name=TEXT, role={"type": "string", "enum": list(ROLES)}, run=TEXT_OR_NULL),
    "Audit": _object(lines={"type": "array", "items": ANYTHING}),
}


def answer(name: str, says: str) -> AnswerSchema:
    return AnswerSchema(says=says, schema={"$ref": f"#/components/schemas/{name}"})


def plain(says: str) -> AnswerSchema:
    return AnswerSchema(says=says, schema=ANYTHING)


# Errors of every request, and of requests for one run.
REFUSED: dict[int, AnswerSchema] = {
    400: AnswerSchema(says="The request does not match its description."),
    401: AnswerSchema(says="The token is missing or wrong."),
    403: AnswerSchema(
        says="The role of the token is too low, or the request comes from a page of another site."
    ),
    409: AnswerSchema(says="The tape or the store is not in a state for that."),
    413: AnswerSchema(says="The body is too large."),
    421: AnswerSchema(says="Unknown Host header."),
    503: AnswerSchema(says="Timeout."),
}
NOT_THERE: dict[int, AnswerSchema] = {**REFUSED, 404: AnswerSchema(says="Not found.")}

"""The table of operations as an OpenAPI 3.1 document. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from playhead._version import __version__
from playhead.views.web.api.schema_checks import Answer, Operation, Parameter, Schema

_ERROR = {"$ref": "#/components/schemas/Error"}


def document(operations: Iterable[Operation], schemas: Mapping[str, Schema]) -> dict[str, Any]:
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
        "paths": paths,
        "components": {
            "schemas": dict(schemas),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        # A server that listens to this machine alone may want none.
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


def _answer(status: int, answer: Answer) -> dict[str, Any]:
    if status in (204, 304):
        return {"description": answer.says}
    schema = dict(answer.schema) if answer.schema or status < 400 else _ERROR
    return {"description": answer.says, "content": {answer.media: {"schema": schema}}}

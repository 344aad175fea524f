"""Describe operations, and check requests against the descriptions. Knows the subset of JSON Schema that we use.

The same description produces the OpenAPI document, so both always agree.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Literal

from starlette.responses import Response

from playhead.views.web.access_tokens import Access, Role
from playhead.views.web.api.api_responses import Problem

Schema = Mapping[str, Any]

_INTEGER = re.compile(r"-?\d{1,15}")
_TRUE, _FALSE = "true", "false"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """Something in the path, or after the question mark. An array is given by repeating it."""

    name: str
    says: str
    schema: Schema
    place: Literal["path", "query"] = "query"
    required: bool = False

    @property
    def default(self) -> Any:
        return () if self.schema["type"] == "array" else self.schema.get("default")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSchema:
    """The response for one status code."""

    says: str
    schema: Schema = field(default_factory=dict)
    media: str = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedRequest:
    """A request that passed its check. `stories`: those of the runs that it names."""

    values: Mapping[str, Any]
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    stories: Mapping[str, Any]
    who: Access


Handle = Callable[[Any, CheckedRequest], Response]
Stream = Callable[[Any, CheckedRequest], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation. `handle` reads files and runs in a thread; `stream` answers requests for `text/event-stream`.

    `needs`: parameters that name a run whose story is required. `shared`: equal concurrent requests share an answer.
    """

    id: str
    method: str
    path: str
    says: str
    answers: Mapping[int, AnswerSchema]
    handle: Handle | None = None
    stream: Stream | None = None
    parameters: tuple[Parameter, ...] = ()
    body: Schema | None = None
    body_required: bool = False
    needs: tuple[str, ...] = ()
    patience_s: int | None = None
    shared: bool = False
    # The least role that may do this. A share link also needs `one_run`: the operation concerns the run {id} alone.
    role: Role = "read"
    one_run: bool = False


def read_query(operation: Operation, given: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Names and values after the question mark, as their types. Problem: one does not fit."""
    known = {one.name: one for one in operation.parameters if one.place == "query"}
    texts: dict[str, list[str]] = {}
    for name, text in given:
        if name not in known:
            raise _unknown(name, list(known))
        texts.setdefault(name, []).append(text)
    values: dict[str, Any] = {}
    for name, one in known.items():
        if name not in texts:
            if one.required:
                raise Problem(400, f"The parameter {name} is missing: {one.says}")
            values[name] = one.default
        elif one.schema["type"] == "array":
            values[name] = tuple(_converted(name, t, one.schema["items"]) for t in texts[name])
        elif len(texts[name]) > 1:
            raise Problem(400, f"The parameter {name} is given twice; one is expected.")
        else:
            values[name] = _converted(name, texts[name][0], one.schema)
    return values


def read_path(operation: Operation, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the path parameters; an impossible value is a 404."""
    values: dict[str, Any] = {}
    for one in operation.parameters:
        if one.place == "path":
            try:
                values[one.name] = _converted(one.name, str(given[one.name]), one.schema)
            except Problem as problem:
                raise Problem(404, problem.reason) from None
    return values


def read_body(operation: Operation, raw: bytes, media: str) -> dict[str, Any]:
    if operation.body is None:
        return {}
    if not raw and not operation.body_required:
        return {}
    if media.partition(";")[0].strip().lower() != "application/json":
        raise Problem(415, f"The body is {media or 'untyped'!r}; expected application/json.")
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Problem(400, f"The body is not JSON: {error}.") from None
    check(body, operation.body, "The body")
    return dict(body)


def _converted(name: str, text: str, schema: Schema) -> Any:
    value: Any = text
    kind = schema["type"]
    if kind == "integer" and _INTEGER.fullmatch(text):
        value = int(text)
    elif kind == "number":
        try:
            value = float(text)
        except ValueError:
            value = text
    elif kind == "boolean" and text in (_TRUE, _FALSE):
        value = text == _TRUE
    check(value, schema, f"The parameter {name}")
    return value


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}
_WORDS = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
}


def check(value: Any, schema: Schema, what: str) -> None:
    """Raise Problem if `value` does not match the schema."""
    kind = schema["type"]
    fits = isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
    if not fits or (isinstance(value, float) and not math.isfinite(value)):
        raise _wrong(what, value, _WORDS[kind])
    if "enum" in schema and value not in schema["enum"]:
        raise _wrong(what, value, f"one of {', '.join(schema['enum'])}")
    if isinstance(value, str):
        _check_text(value, schema, what)
    elif isinstance(value, dict):
        _check_members(value, schema, what)
    elif isinstance(value, list):
        if len(value) > schema.get("maxItems", math.inf):
            raise Problem(400, f"{what} has {len(value)} items; at most {schema['maxItems']}.")
        for at, item in enumerate(value):
            check(item, schema["items"], f"{what}[{at}]")
    elif not schema.get("minimum", -math.inf) <= value <= schema.get("maximum", math.inf):
        low, high = schema.get("minimum", "any"), schema.get("maximum", "any")
        raise _wrong(what, value, f"from {low} to {high}")


def _check_text(value: str, schema: Schema, what: str) -> None:
    most = schema.get("maxLength", math.inf)
    if len(value) > most:
        raise Problem(400, f"{what} is {len(value)} characters long; at most {most}.")
    if len(value) < schema.get("minLength", 0):
        raise Problem(400, f"{what} is empty.")
    pattern = schema.get("pattern")
    if pattern is not None and not re.search(pattern, value):
        raise _wrong(what, value, schema.get("description", f"something like {pattern}"))


def _check_members(value: dict[str, Any], schema: Schema, what: str) -> None:
    known: Mapping[str, Schema] = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    if len(value) > schema.get("maxProperties", math.inf):
        raise Problem(400, f"{what} has {len(value)} members; at most {schema['maxProperties']}.")
    if len(value) < schema.get("minProperties", 0):
        raise Problem(400, f"{what} is empty; expected one of {', '.join(known)}.")
    for name in schema.get("required", ()):
        if name not in value:
            raise Problem(400, f"{what}.{name} is missing.")
    for name, member in value.items():
        if name in known:
            check(member, known[name], f"{what}.{name}")
        elif others is False:
            raise _unknown(name, list(known))
        elif isinstance(others, Mapping):
            _check_text(name, schema.get("propertyNames", {}), f"A name in {what}")
            check(member, others, f"{what}.{name[:40]}")


def _unknown(name: str, known: Sequence[str]) -> Problem:
    near = get_close_matches(name, known, n=1)
    advice = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(known) or 'none'}."
    return Problem(400, f"There is no parameter {name[:80]!r} here.", advice)


def _wrong(what: str, value: Any, expected: str) -> Problem:
    return Problem(400, f"{what} is {str(value)[:80]!r}; expected {expected}.")

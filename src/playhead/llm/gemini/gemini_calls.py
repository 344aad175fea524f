"""Assemble function calls whose arguments Gemini streams in parts. Knows ``partialArgs`` and JSON paths."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from playhead.llm.http.jsontext import mapping, mappings, string

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d{1,4})\]|\['([^']*)'\]")
_VALUES = ("stringValue", "numberValue", "boolValue")


def whole_parts(parts: list[dict[str, Any]], *, ended: bool) -> list[dict[str, Any]]:
    """Return the parts with each streamed call as one part.

    A streamed call begins with its name and ``willContinue``, continues in parts with only ``partialArgs``, and ends
    with a part without ``willContinue``.
    """
    whole: list[dict[str, Any]] = []
    growing: dict[str, Any] | None = None
    for part in parts:
        call = part.get("functionCall")
        if not isinstance(call, dict) or not _is_streamed(call, growing):
            whole.append(part)
            continue
        if growing is None or call.get("name"):
            growing = {**call, "args": dict(mapping(call.get("args")))}
            growing.pop("partialArgs", None)
            whole.append({**part, "functionCall": growing})
        for piece in mappings(call.get("partialArgs")):
            _write(growing["args"], piece)
        growing["willContinue"] = call.get("willContinue") is True
        if not growing["willContinue"]:
            growing = None
    if growing is not None and ended:
        growing["willContinue"] = False
    return whole


def _is_streamed(call: dict[str, Any], growing: dict[str, Any] | None) -> bool:
    if "partialArgs" in call or call.get("willContinue") is True:
        return True
    return growing is not None and not call.get("name")


def _write(args: dict[str, Any], piece: dict[str, Any]) -> None:
    """Put one value at its JSON path; a string that exists there is extended."""
    steps: list[str | int] = [
        int(index) if index else name or quoted
        for name, index, quoted in _STEP.findall(_path(piece))
    ]
    inside: Any = args
    for step, following in pairwise(steps):
        inside = _get(inside, step, [] if isinstance(following, int) else {})
    if steps:
        value = next((piece[kind] for kind in _VALUES if kind in piece), None)
        known = _get(inside, steps[-1], value)
        if isinstance(value, str) and isinstance(known, str) and known is not value:
            inside[steps[-1]] = known + value


def _get(inside: Any, step: str | int, default: Any) -> Any:
    """Return the value at this step, created if necessary; None if the path is invalid."""
    if isinstance(inside, dict) and isinstance(step, str):
        return inside.setdefault(step, default)
    if isinstance(inside, list) and isinstance(step, int) and step <= len(inside):
        # Lists grow one by one: an untrusted index must not create a huge list.
        if step == len(inside):
            inside.append(default)
        return inside[step]
    return None


def _path(piece: dict[str, Any]) -> str:
    return (string(piece.get("jsonPath")) or "").removeprefix("$")

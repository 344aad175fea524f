"""Taped values as a programmer would write them. Knows how values are frozen; not who asks."""

from __future__ import annotations

import json
from typing import Any

from playhead.encoding.values import thaw

LONGEST = 400
_SHORT = 60
# `json.dumps` makes an encoder for every value, which takes longer than encoding a short one.
_encode = json.JSONEncoder(ensure_ascii=False).encode


def compact(frozen: Any) -> str:
    """On one line, and not much more of it than a line can hold."""
    if isinstance(frozen, str):
        return _encode(frozen[:LONGEST])
    if isinstance(frozen, dict) and next(iter(frozen), "")[:1] == "$":
        return _special(frozen)[:LONGEST]
    try:
        return _encode(_shallow(frozen))[:LONGEST]
    except (TypeError, ValueError, RecursionError):
        return repr(frozen)[:LONGEST]


def arguments(frozen: Any) -> str:
    """`(order="A-1009", limit=3)`."""
    if not isinstance(frozen, dict):
        return "()" if frozen in (None, []) else f"({compact(frozen)})"
    given = (f"{name}={compact(item)}" for name, item in list(frozen.items())[:20])
    return f"({', '.join(given)})"


def pretty(frozen: Any) -> str:
    """Whole, on as many lines as it takes."""
    if isinstance(frozen, str):
        return frozen
    try:
        flat = json.dumps(frozen, ensure_ascii=False, default=str)
        if len(flat) <= _SHORT:
            return flat
        return json.dumps(frozen, ensure_ascii=False, indent=2, default=str)
    except (TypeError, ValueError, RecursionError):
        return repr(frozen)


def _special(frozen: dict[str, Any]) -> str:
    if "$opaque" in frozen:
        return str(frozen.get("repr"))
    if "$hash" in frozen:
        return f"(not kept: {frozen.get('size')} bytes)"
    if "$blob" in frozen:
        return f"(blob, {frozen.get('size')} bytes)"
    try:
        return repr(thaw(frozen))
    except Exception:  # noqa: BLE001  a stranger's value may claim to be anything
        return str(frozen)


def _shallow(frozen: Any) -> Any:
    """The beginning of a long list or table: a megabyte is not encoded for the sake of a line."""
    if isinstance(frozen, list):
        return [_leaf(item) for item in frozen[:40]]
    if isinstance(frozen, dict):
        return {name: _leaf(item) for name, item in list(frozen.items())[:40]}
    return frozen


def _leaf(item: Any) -> Any:
    if isinstance(item, str):
        return item[:LONGEST]
    if isinstance(item, list):
        return item[:10]
    return item

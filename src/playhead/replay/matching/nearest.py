"""Explain a miss: the nearest taped call, and the fields that differ. Pure.

For the message only: the nearest call is never served.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from playhead.encoding.form_fields import with_form
from playhead.replay.matching.fingerprint import canonical_form
from playhead.replay.matching.taped import TapedCall

_MOST_CANDIDATES = 40
_MOST_DIFFERENCES = 20
_SHORT = 120
_BLOCK = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """`path` like `body.messages[3].content`; None on a side: the field is not there."""

    path: str
    taped: Any
    asked: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """The taped call that comes closest, and every field that differs."""

    number: int
    ref: str
    name: str
    lane: str
    served: bool
    request: Any
    differences: tuple[Difference, ...]


def nearest(
    calls: Sequence[TapedCall], boundary: str, name: str, request: Any, lane: str
) -> Nearest | None:
    """Return the taped call of this boundary with the fewest differences. If several are equal, unserved calls and
    calls of this lane come first.
    """
    pool = [call for call in calls if call.boundary == boundary]
    pool.sort(key=lambda call: (call.served, call.name != name, call.lane != lane, call.number))
    asked = canonical_form(with_form(request))
    best: tuple[tuple[int, bool, bool, int], TapedCall, list[Difference]] | None = None
    for call in pool[:_MOST_CANDIDATES]:
        found = differences(canonical_form(with_form(call.request)), asked)
        if call.name != name:
            found.insert(0, Difference(path="name", taped=call.name, asked=name))
        rank = (len(found), call.served, call.lane != lane, call.number)
        if best is None or rank < best[0]:
            best = (rank, call, found)
    if best is None:
        return None
    _, call, found = best
    return Nearest(
        number=call.number,
        ref=call.ref,
        name=call.name,
        lane=call.lane,
        served=call.served,
        request=call.request,
        differences=tuple(found),
    )


def differences(taped: Any, asked: Any, path: str = "") -> list[Difference]:
    """Return the differences leaf by leaf, at most twenty."""
    found: list[Difference] = []
    _compare(taped, asked, path, found)
    return found[:_MOST_DIFFERENCES]


def _compare(taped: Any, asked: Any, path: str, found: list[Difference]) -> None:
    if len(found) >= _MOST_DIFFERENCES or taped == asked:
        return
    if isinstance(taped, dict) and isinstance(asked, dict):
        for name in [*taped, *(one for one in asked if one not in taped)]:
            # `text` and `$json` are how a body is kept; people know the body.
            inner = path if name in ("text", "$json") else f"{path}.{name}" if path else name
            _compare(taped.get(name), asked.get(name), inner, found)
    elif isinstance(taped, list) and isinstance(asked, list):
        for index in range(max(len(taped), len(asked))):
            left = taped[index] if index < len(taped) else None
            right = asked[index] if index < len(asked) else None
            _compare(left, right, f"{path}[{index}]", found)
    else:
        found.append(Difference(path=path or "request", taped=taped, asked=asked))


def around(taped: Any, asked: Any) -> tuple[str, str]:
    """Return both values; long texts are cut to the surroundings of the first character that differs."""
    left, right = _text(taped), _text(asked)
    if max(len(left), len(right)) <= _SHORT:
        return left, right
    at = _parting(left, right)
    start = max(0, at - 40)
    return _window(left, start), _window(right, start)


def _parting(left: str, right: str) -> int:
    """Return the index of the first character that differs. Blocks are compared first: an upload has megabytes."""
    shorter = min(len(left), len(right))
    begin = 0
    while begin < shorter and left[begin : begin + _BLOCK] == right[begin : begin + _BLOCK]:
        begin += _BLOCK
    end = min(begin + _BLOCK, shorter)
    return next((at for at in range(begin, end) if left[at] != right[at]), shorter)


def _window(text: str, start: int) -> str:
    cut = text[start : start + _SHORT]
    return ("…" if start else "") + cut + ("…" if start + _SHORT < len(text) else "")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "(nothing)" if value is None else repr(value)

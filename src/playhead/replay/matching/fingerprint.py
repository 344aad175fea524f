"""Canonical form, normalised form and lookup keys of requests: these decide whether two requests are the same.

Pure. Knows requests as frozen JSON and their volatile parts; does not know tapes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from typing import Any

from playhead.encoding.form_fields import with_form
from playhead.encoding.jsonbytes import canonical
from playhead.host.later import pattern
from playhead.redact.forms import PLACEHOLDER

# Moments and durations. They are blanked, not renamed: whether the clock showed the same millisecond twice is chance.
_TIMES = (
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?",
    r"\b1[5-9]\d{8}(?:\.\d+|\d{3}|\d{6}|\d{9})?\b",
    r"\bduration_ms\W{1,5}\d+\b",
    r"\b\d+\.\d+ ?(?:s|ms|sec|seconds)\b",
    # Codex rounds the duration of a patch: "0 seconds" in one run, "0.1 seconds" in the next.
    r"Wall time: \d+(?:\.\d+)? seconds\b",
    # Codex prints "succeeded in 1238ms:" and "exited 3 in 52ms:".
    r"(?<=\bin )\d{1,8}ms(?=:)",
)
# Values that clients generate in every run. Each is renamed by order of appearance (alpha-renaming): blanking
# would accept a result that is paired with the wrong call, renaming does not.
_KINDS = (
    PLACEHOLDER,
    r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}",
    # A moment and some letters: names of files that must be new (`snapshot-bash-1794795457815-gi7875.sh`).
    r"(?:\b[a-z]{1,12})?[-_]1[5-9]\d{11}-[0-9a-z]{4,12}\b",
    r"\d{4}-\d\d-\d\d",
    r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, [A-Z][a-z]{2,8} \d{1,2}, \d{4}",
    r"(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?,? \d{1,2} [A-Z][a-z]{2,8} \d{4}",
    r"(?<=_)1[5-9]\d{11}_\d+\b",
    r"\b0x[0-9a-f]{6,16}\b",
    r"\bChunk ID: [0-9a-f]{4,16}\b",
    r"\b[a-z]{1,12}[_-](?=[A-Za-z0-9]{0,40}\d)[A-Za-z0-9]{12,64}\b",
    r"\b(?=[0-9a-f]{0,11}[a-f])(?=[0-9a-f]{0,30}\d)[0-9a-f]{12,64}\b",
    # A short git hash.
    r"\b(?=[0-9]{0,10}[a-f])(?=[a-f]{0,10}[0-9])[0-9a-f]{7,11}\b",
    r"(?:/private)?/(?:tmp|var/folders|var/tmp|dev/shm)/[A-Za-z0-9._+-]+(?:/[A-Za-z0-9._+-]+)*",
    r"\b(?:127\.0\.0\.1|localhost|\[::1\]):\d{2,5}\b",
    r"\b(?:pid|PID|PGID|pgid)[:= ]+\d+\b",
    r"(?i:----?-{0,20}(?:web)?kitformboundary[0-9a-z]+)",
)
# The replacement for each of them.
TIME = "‹time›"
# Ids first: a time within one of them is a part of it.
# Compiled (2 ms) for the first request that does not match exactly.
VOLATILE = pattern("|".join([*_KINDS[:3], f"(?P<time>{'|'.join(_TIMES)})", *_KINDS[3:]]))


def plain_key(request: Any) -> Hashable:
    """Return a key that is equal for requests with equal frozen forms. Cheap: long texts go through `hash`, which
    CPython computes at memory speed and keeps. TypeError: the request is not plain JSON.
    """
    kind = type(request)
    if kind is dict:
        return ("dict", *((name, plain_key(request[name])) for name in sorted(request)))
    if kind is list:
        return ("list", *map(plain_key, request))
    if kind is str:
        return request if len(request) <= 64 else ("str", hash(request))
    if kind is int or request is None:
        number: int | None = request
        return number
    if kind is bool or kind is float:
        # To Python, 1 and 1.0 and True are equal; in JSON they are not.
        return (kind.__name__, request)
    raise TypeError(f"{kind.__name__} is not JSON")


def canonical_form(request: Any) -> Any:
    """Return the value with JSON inside texts (a body) as structure, so that formatting and key order do not count."""
    if type(request) is dict:
        return {name: canonical_form(item) for name, item in request.items()}
    if type(request) is list:
        return [canonical_form(item) for item in request]
    if type(request) is str and request[:1] in ("{", "[") and request[-1:] in ("}", "]"):
        try:
            return {"$json": _decode(request)}
        except (ValueError, RecursionError):
            return request
    return request


def _finite(number: str) -> float:
    value = float(number)
    if value - value != 0:
        raise ValueError(f"{number} is out of range")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_decode = json.JSONDecoder(parse_float=_finite, parse_constant=_no_constant).decode


def canonical_text(request: Any) -> str:
    return canonical(canonical_form(with_form(request))).decode("utf-8", "surrogatepass")


def normalised_text(request: Any) -> str:
    """Return the canonical text with all volatile values renamed: V0, V1, … in order of appearance."""
    return rename(canonical_text(request))


def rename(text: str) -> str:
    names: dict[str, str] = {}

    def named(hit: re.Match[str]) -> str:
        if hit.lastgroup == "time":
            return TIME
        return names.setdefault(hit.group(), f"‹V{len(names)}›")

    return VOLATILE.sub(named, text)

"""The calls of a tape in groups whose requests differ in the text of their body alone. Knows how
`fingerprint.plain_key` spells a request; not how calls are matched beyond that.

A program asks the same address again and again. Within such a group a call is found by one number: to
compare whole requests would mean to fetch all of each from where the tape lies in memory.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Hashable, Iterable
from typing import Any

from playhead.replay.matching.taped import TapedCall

# Boundary, name, and all of the request but its body.
Common = tuple[str, str, tuple[Hashable, ...]]
_NO_BODY = ("body", None)


class Alike:
    """One such group: by text, by lane, in order."""

    __slots__ = ("_texts", "told")

    def __init__(self, boundary: str, name: str) -> None:
        self._texts: dict[Hashable, dict[str, deque[TapedCall]]] = {}
        names = json.dumps({"boundary": boundary, "name": name}, ensure_ascii=False)
        # How the event of a call begins that was answered from here.
        self.told = f'{names[:-1]},"match":{{"rung":"exact","of":'

    def put(self, text: Hashable, call: TapedCall) -> None:
        self._texts.setdefault(text, {}).setdefault(call.lane, deque()).append(call)

    def find(self, text: str, lane: str) -> deque[TapedCall] | None:
        lanes = self._texts.get(text if len(text) <= 64 else hash(text))
        return None if lanes is None else lanes.get(lane)


def grouped(calls: Iterable[TapedCall]) -> dict[Common, Alike]:
    """Those whose body is a text, or that have none."""
    found: dict[Common, Alike] = {}
    for call in calls:
        key = call.key
        if type(key) is not tuple or len(key) < 2 or key[0] != "dict" or call.served:
            continue
        text = _text(key[1])
        if text is None:
            continue
        boundary, name = call.boundary, call.name
        common = (boundary, name, key[2:])
        alike = found.get(common)
        if alike is None:
            alike = found[common] = Alike(boundary, name)
        alike.put(text, call)
    return found


def _text(body: Any) -> Hashable:
    """What `Alike` knows a body by: itself, or its hash; None: it is no text."""
    if body == _NO_BODY:
        return ""
    if type(body) is not tuple or body[0] != "body":
        return None
    inner = body[1]
    if type(inner) is not tuple or len(inner) != 2 or inner[1][0] != "text":
        return None
    text: Hashable = inner[1][1]
    return text[1] if type(text) is tuple else text

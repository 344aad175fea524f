"""Places on a tape as people name them: a time, or the number of a call. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from playhead.errors import UsageError
from playhead.story import CallItem
from playhead.views.play.frames import Frame

_CALL = re.compile(r"#?(\d+)")
_UNITS = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)")
_CLOCK = re.compile(r"(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One of the two."""

    call: int | None = None
    at_ns: int = 0


def parse_place(text: str) -> Place:
    """`7` and `#7` are calls; `12s`, `1.5m` and `01:30.5` are times from the start."""
    text = text.strip()
    if hit := _CALL.fullmatch(text):
        return Place(call=int(hit.group(1)))
    if hit := _UNITS.fullmatch(text):
        return Place(at_ns=round(float(hit.group(1)) * _SECONDS[hit.group(2)] * 1e9))
    if hit := _CLOCK.fullmatch(text):
        hours, minutes, seconds = (float(part or 0) for part in hit.groups())
        return Place(at_ns=round((hours * 3600 + minutes * 60 + seconds) * 1e9))
    raise UsageError(
        f"{text!r} is no place on a tape; expected a call (7 or #7) or a time (12s, 01:30)."
    )


def between(frames: Sequence[Frame], first: Place | None, last: Place | None) -> Sequence[Frame]:
    """From the one up to the other, both included."""
    low = 0 if first is None else _index(frames, first, end=False)
    high = len(frames) if last is None else _index(frames, last, end=True)
    return frames[low:high]


def _index(frames: Sequence[Frame], place: Place, *, end: bool) -> int:
    if place.call is None:
        moments = [frame.at_ns for frame in frames]
        return (bisect_right if end else bisect_left)(moments, place.at_ns)
    found = [
        at
        for at, frame in enumerate(frames)
        if isinstance(frame.item, CallItem) and frame.item.number == place.call
    ]
    if not found:
        raise UsageError(f"Call {place.call} is not among what would be played.")
    return found[-1] + 1 if end else found[0]

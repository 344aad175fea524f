"""The place where a replay differs from its tape, as data and as text. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from playhead.host import later
from playhead.replay.matching.nearest import Nearest, around

_CODE = later.pattern(r":\d+( |$)")
# The report of a divergence has longer texts only in part: the call has them whole, and to search 50 MB for secrets
# another four times takes half a minute.
_LONGEST, _SHOWN = 1_000_000, 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Parting:
    """One divergence. `kind`: missed (nothing on the tape fits), unused (a taped call was never
    made), leak (something reached for the world past every hook), output, exit, state.
    """

    kind: str
    step: int | None = None
    boundary: str | None = None
    name: str | None = None
    lane: str | None = None
    at: str | None = None
    request: Any = None
    nearest: Nearest | None = None
    detail: str | None = None
    advice: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n".join(part for part in (_what(self), _near(self), self.advice) if part)

    def as_json(self) -> dict[str, Any]:
        members: dict[str, Any] = _lists(asdict(self))
        return members


def _lists(value: Any) -> Any:
    """Convert tuples to lists, so that a value equals what is read back from the tape, and shorten very long texts."""
    if isinstance(value, dict):
        taped, asked = value.get("taped"), value.get("asked")
        if isinstance(taped, str) and isinstance(asked, str) and _is_long(taped, asked):
            taped, asked = around(taped, asked)
            value = {**value, "taped": taped, "asked": asked}
        return {name: _lists(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_lists(item) for item in value]
    if isinstance(value, str) and _is_long(value):
        return f"{value[:_SHOWN]}… ({len(value):,} characters)"
    return value


def _is_long(*texts: str) -> bool:
    return any(len(text) > _LONGEST for text in texts)


def _what(parting: Parting) -> str:
    if parting.kind == "missed":
        where = f", called {place_of(parting.at)}" if parting.at else ""
        return (
            f"No taped call matches {parting.boundary} call {parting.step} "
            f"({parting.name}, lane {parting.lane}{where})."
        )
    if parting.kind == "unused":
        return f"Taped call {parting.step} ({parting.boundary} {parting.name}, lane {parting.lane}) was never made."
    return parting.detail or parting.kind


def place_of(at: str) -> str:
    """Return where a call was made: `at agent.py:42 main`. The proxy knows only the client: `by curl/8.5`."""
    return f"at {at}" if _CODE.search(at) else f"by {at}"


def _near(parting: Parting) -> str | None:
    near = parting.nearest
    if near is None:
        return parting.detail if parting.kind == "missed" else None
    served = ", served already" if near.served else ""
    if not near.differences:
        return f"Nearest is taped call {near.number}: the same request{served}."
    shown = []
    for one in near.differences[:3]:
        taped, asked = around(one.taped, one.asked)
        shown.append(f"{one.path} differs ({taped!r} → {asked!r})")
    more = len(near.differences) - len(shown)
    return (
        f"Nearest is taped call {near.number}{served}: "
        + "; ".join(shown)
        + (f"; and {more} more" if more > 0 else "")
        + "."
    )


def advice_for(boundary: str) -> str:
    return (
        f"Re-record with `playhead record`, or let this boundary go live: `--live {boundary}`; "
        "a field that changes in every run can be ignored in [replay.ignore]."
    )

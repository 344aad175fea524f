"""Formats durations, sizes, counts, money, times and recorded Python values for people. Pure."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from playhead.encoding.values import thaw

if TYPE_CHECKING:  # `playhead list --json` must not load the story
    from playhead.story.comparison.compare import Figure


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    if seconds < 0.0995:
        return f"{seconds * 1000:.1f} ms" if seconds < 0.00995 else f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} m {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} m" if hours < 100 else f"{hours // 24} d {hours % 24:02d} h"


def is_long_start(start_up_ns: float, duration_ns: float) -> bool:
    """Return whether a start is long enough to be named: half a second, and a fifth of the run."""
    return start_up_ns >= 5e8 and start_up_ns * 5 >= duration_ns


def took(nanoseconds: int | None) -> str:
    return duration(None if nanoseconds is None else nanoseconds / 1e9)


def count(number: int | None) -> str:
    """Return an exact number: 8,412. Unknown is a dash, never 0."""
    return "–" if number is None else f"{number:,}"


def exact(value: object) -> str:
    """Return a number of a tape, which may be a value of any type."""
    return count(value) if type(value) is int else "?"


def short(number: int | None) -> str:
    """Return a number for a column: 8.4k."""
    if number is None:
        return "–"
    if number < 10_000:
        return f"{number:,}"
    if number < 999_500:
        return f"{number / 1000:.0f}k" if number >= 100_000 else f"{number / 1000:.1f}k"
    return f"{number / 1e6:.1f}M"


def money(usd: float | None, *, at_least: bool = False) -> str:
    """Return an amount in US dollars. `at_least`: some calls have no price."""
    if usd is None:
        return "–"
    if usd <= 0:
        return "$0.00"
    shown = f"${usd:,.2f}" if usd >= 1 else f"${usd:.4f}" if usd >= 0.0001 else f"${usd:.6f}"
    return f"≥{shown}" if at_least else shown


def size(number: int) -> str:
    value = float(number)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def age(started_ns: int, now_ns: int) -> str:
    """Return an age for a column: `5 s`, `3 h`, `12 d`; never negative, even if the clock was set back."""
    seconds = max(0, now_ns - started_ns) // 1_000_000_000
    for limit, size, unit in ((60, 1, "s"), (3600, 60, "m"), (86400, 3600, "h")):
        if seconds < limit:
            return f"{seconds // size} {unit}"
    return f"{seconds // 86400} d"


def date(wall_ns: int) -> str:
    """Return local time to the second, with its zone."""
    return _local(wall_ns).strftime("%Y-%m-%d %H:%M:%S %Z")


def moment(wall_ns: int) -> str:
    """Return local time to the millisecond."""
    return _local(wall_ns).strftime("%H:%M:%S.%f")[:-3]


def position(nanoseconds: int) -> str:
    """Return a position on a tape: `00:07.3`, `1:02:09.0`."""
    tenths = max(0, nanoseconds) // 100_000_000
    minutes, rest = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    shown = f"{minutes:02d}:{rest // 10:02d}.{rest % 10}"
    return f"{hours}:{shown}" if hours else shown


# The last second of the year 9999, minus a day for time zones.
_LATEST = 253_402_200_000


def _local(wall_ns: int) -> datetime:
    """Convert a time, clamped: a tape may contain any number."""
    seconds = max(0, min(wall_ns / 1e9, _LATEST))
    return datetime.fromtimestamp(seconds, timezone.utc).astimezone()


LONGEST = 400
_SHORT = 60
# `json.dumps` makes an encoder for every value, which takes longer than encoding a short one.
_encode = json.JSONEncoder(ensure_ascii=False).encode


def compact(frozen: Any) -> str:
    """Return a value on one line, shortened."""
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
    """Return a whole value; long ones take several lines."""
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
    except Exception:  # noqa: BLE001  a tape may contain any value
        return str(frozen)


def _shallow(frozen: Any) -> Any:
    """Return the beginning of a long list or dict, so that a megabyte is not encoded for one line."""
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


def shown(figure: Figure, value: float | None) -> str:
    if figure.name == "duration_s":
        return duration(value)
    if figure.name == "cost_usd":
        return money(value)
    return count(None if value is None else int(value))


def change(figure: Figure) -> str:
    if figure.left is None or figure.right is None or figure.left == figure.right:
        return ""
    if not figure.left:
        return "new"
    return f"{(figure.right - figure.left) / figure.left:+.0%}"

"""Moments as people write them: a day, a time, or how long ago. Pure."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from playhead.errors import UsageError

_AGO = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)(s|m|h|d|w)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def parse_moment(text: str, now_ns: int) -> int:
    """`2026-11-15`, `2026-11-15T07:11:05Z`, `2h`: nanoseconds since 1970. Without a zone: UTC."""
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return max(0, now_ns - round(float(ago[1]) * _SECONDS[ago[2]] * 1e9))
    try:
        when = datetime.fromisoformat(text)
        if when.tzinfo is None:
            when = when.replace(tzinfo=timezone.utc)
        return max(0, round(when.timestamp() * 1e6) * 1000)
    except (ValueError, OverflowError):
        raise UsageError(
            f"{text[:80]!r} is no moment; expected 2026-11-15, 2026-11-15T07:11:05Z or 2h."
        ) from None

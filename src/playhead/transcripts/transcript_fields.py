"""Read members of untrusted JSON. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_MOMENT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:?\d\d)?"
)
_DAYS_BEFORE = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)


def text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def maybe(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0


def number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and type(value) is not bool else None


def parsed(value: Any) -> Any:
    """Parse a string as JSON; return the string itself if it is not JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def moment_ns(value: Any) -> int | None:
    """Parse an ISO time as nanoseconds since 1970, without a float, which would lose them.

    Parsed by hand: on Python 3.10 `datetime.fromisoformat` accepts neither `Z` nor fewer than six digits.
    """
    hit = _MOMENT.fullmatch(value.strip()) if isinstance(value, str) else None
    if hit is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in hit.groups()[:6])
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    past = year - 1
    days = past * 365 + past // 4 - past // 100 + past // 400 - 719_162
    days += _DAYS_BEFORE[month - 1] + (leap and month > 2) + day - 1
    seconds = ((days * 24 + hour) * 60 + minute) * 60 + second - _offset_s(hit.group(8))
    return seconds * 1_000_000_000 + int((hit.group(7) or "0").ljust(9, "0"))


def _offset_s(zone: str | None) -> int:
    if zone is None or zone == "Z":
        return 0
    sign = -1 if zone[0] == "-" else 1
    return sign * (int(zone[1:3]) * 3600 + int(zone[-2:]) * 60)


def spelled(value: Any) -> str:
    """Return a string as it is, and any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def short(value: Any) -> str:
    """Shorten a text to one line for display."""
    said = " ".join(str(value).split())
    return said if len(said) <= 100 else said[:99] + "…"


def of_type(line: Mapping[str, Any]) -> str:
    return text(line.get("type"))

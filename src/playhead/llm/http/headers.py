"""Read the HTTP headers about content types and retries. Does not know any API."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime

Headers = Mapping[str, str] | Iterable[tuple[str, str]] | None

_HTTP_DATE = re.compile(r"(\d\d) ([A-Z][a-z]{2}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT")
_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"


def header(headers: Headers, name: str) -> str | None:
    """The first header of that name, in whatever case it was sent."""
    if headers is None:
        return None
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    for key, value in pairs:
        if _as_text(key).lower() == name:
            return _as_text(value)
    return None


def content_type_of(headers: Headers) -> str:
    """The media type alone, in small letters; empty when unknown."""
    return (header(headers, "content-type") or "").partition(";")[0].strip().lower()


def retry_after_of(headers: Headers) -> float | None:
    """Return the seconds to wait before a retry; dates are compared with the server's clock."""
    milliseconds = _number(header(headers, "retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    asked = header(headers, "retry-after")
    seconds = _number(asked)
    if seconds is not None or asked is None:
        return seconds
    until, sent = _date(asked), _date(header(headers, "date"))
    if until is None or sent is None:
        return None
    return max(0.0, (until - sent).total_seconds())


def _date(text: str | None) -> datetime | None:
    # Not email.utils: importing it takes a fifth of the import time of this package.
    found = _HTTP_DATE.search(text or "")
    month = _MONTHS.find(found[2]) // 3 + 1 if found else 0
    if not found or month < 1:
        return None
    day, year, hour, minute, second = (int(found[at]) for at in (1, 3, 4, 5, 6))
    try:
        return datetime(year, month, day, hour, minute, second)  # noqa: DTZ001 - always GMT
    except ValueError:
        return None


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else -1.0
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


def _as_text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value

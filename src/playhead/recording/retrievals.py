"""What was looked up for a prompt, as rows. Knows the ways in which programs describe a source; not
turns, and not the tape. Whatever a source is like, there is a row for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from playhead.encoding.values import safe_str
from playhead.host.interrupts import is_interrupt
from playhead.host.later import Later

if TYPE_CHECKING:
    import hashlib
else:
    hashlib = Later("hashlib")

_MOST = 10_000


def told(sources: Iterable[Any]) -> dict[str, Any]:
    """Counts and rows. Of a list that never ends, the first ten thousand."""
    rows: list[dict[str, Any]] = []
    try:
        rows.extend(_row(source) for source in islice(sources, _MOST))
    except Exception as error:  # the host's own iterator
        if is_interrupt(error):
            raise
        rows.append(_unread(error))
    taken = [row for row in rows if row["included"]]
    return {
        "count": len(rows),
        "included": len(taken),
        "dropped": len(rows) - len(taken),
        "bytes": sum(row["bytes"] for row in taken if type(row["bytes"]) is int),
        "sources": rows,
    }


def _row(source: Any) -> dict[str, Any]:
    try:
        return _read(source)
    except Exception as error:  # a host's object may raise from any attribute
        if is_interrupt(error):
            raise
        return _unread(error)


def _read(source: Any) -> dict[str, Any]:
    def get(*names: str) -> Any:
        for name in names:
            found = source.get(name) if isinstance(source, dict) else getattr(source, name, None)
            if found is not None:
                return found
        return None

    snippet = get("snippet", "text", "content")
    raw = None if snippet is None else safe_str(snippet).encode()
    included, size = get("included"), get("bytes")
    return {
        "id": get("id", "source", "name"),
        "hash": get("hash") or (None if raw is None else hashlib.sha256(raw).hexdigest()[:16]),
        "score": get("score"),
        "included": True if included is None else bool(included),
        "why": get("why", "reason", "dropped"),
        "bytes": size if size is not None else (None if raw is None else len(raw)),
    }


def _unread(error: Exception) -> dict[str, Any]:
    why = f"it could not be read: {type(error).__name__}"
    return {"id": None, "hash": None, "score": None, "included": True, "why": why, "bytes": None}

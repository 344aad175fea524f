"""What a level leaves of an event's data. Pure; knows kinds and levels, not tapes.

`full` keeps everything. `standard` keeps metadata, errors, and hashes in place of contents.
`minimal` keeps metadata alone.
"""

from __future__ import annotations

from playhead import events
from playhead.encoding.jsonbytes import canonical
from playhead.encoding.values import Frozen, freeze, type_name
from playhead.host.later import Later

TYPE_CHECKING = False
if TYPE_CHECKING:
    import hashlib
    from collections.abc import Callable
    from typing import Any

    from playhead.events import Level

    Freeze = Callable[[Any], Any]
else:
    hashlib = Later("hashlib")


# Members that say what happened, when and how it ended, and hold no content.
_METADATA: dict[str, frozenset[str]] = {
    events.CALL: frozenset(
        {
            "boundary",
            "name",
            "effect",
            "api",
            "method",
            "url",
            "model",
            "stream",
            "argv0",
            "library",
        }
    ),
    events.OUTCOME: frozenset(
        {"call", "how", "status", "took_ns", "exit_code", "signal", "bytes", "chunks", "usage"}
    ),
    events.CHUNK: frozenset({"call", "stream", "sizes", "at_ns"}),
    events.TURN_START: frozenset({"turn", "name", "purpose"}),
    events.TURN_END: frozenset({"turn", "name", "how", "took_ns", "last_seam", "seams"}),
    events.SEAM: frozenset({"turn", "name", "took_ns", "at_ns"}),
    events.RETRIEVAL: frozenset({"turn", "count", "included", "dropped", "bytes"}),
    events.OUTPUT: frozenset({"stream", "bytes"}),
    events.SNAPSHOT: frozenset({"store", "bytes"}),
}
_WHOLE = frozenset(
    {
        events.RUN_START,
        events.RUN_END,
        events.SEGMENT_START,
        events.SEGMENT_END,
        events.GAP,
        events.HOOK,
        events.HOLE,
    }
)
_ERRORS = frozenset({"error", "raised"})


def reduce(level: Level, kind: str, data: Any, *, ours: bool, frozen: Freeze = freeze) -> Any:
    """`data` as `level` keeps it. `frozen` makes of a value what a hash is taken of: a hash of a
    password would tell it to anybody who tries the common ones, so secrets go out before.
    """
    if level == "full" or (ours and kind in _WHOLE):
        return data
    kept_names = _METADATA.get(kind, frozenset()) if ours else frozenset()
    if not isinstance(data, dict):
        return digest(frozen(data)) if level == "standard" and data is not None else None
    # dict.items: what a subclass makes of it is its own affair.
    items = dict(dict.items(data))
    kept = {name: item for name, item in items.items() if name in kept_names}
    if level == "standard":
        for name, item in items.items():
            if ours and name in _ERRORS:
                kept[name] = item
            elif name not in kept:
                kept[name] = digest(_member(frozen, name, item))
    elif ours and any(name in items for name in _ERRORS):
        kept["error_type"] = error_type(items.get("error") or items.get("raised"))
    return kept or None


def _member(frozen: Freeze, name: Any, item: Any) -> Any:
    """Frozen under its name, which may be that of a secret."""
    settled = frozen({name: item})
    return settled.get(name, settled)


def digest(item: Any) -> Any:
    """A hash and a size in place of frozen content; numbers and flags say little and stay."""
    if item is None or isinstance(item, (bool, int, float)):
        return item
    raw = item.encode() if isinstance(item, str) else canonical(item)
    return Frozen({"$hash": hashlib.sha256(raw).hexdigest()[:32], "size": len(raw)})


def error_type(error: Any) -> str | None:
    if isinstance(error, BaseException):
        return type_name(type(error)).rpartition(":")[2]
    if isinstance(error, dict):
        return str(error.get("$exception", "")).rpartition(":")[2] or None
    return None

"""Reduce an event to the level of its run. Knows levels and the table of kinds; does not know how values are encoded.

Levels: `full` keeps everything; `standard` keeps metadata, errors, and hashes in place of contents; `minimal`
keeps metadata alone. The table of kinds (`events.py`) says which members are metadata.
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


_ERRORS = frozenset({"error", "raised"})


def reduce(level: Level, kind: str, data: Any, *, ours: bool, frozen: Freeze = freeze) -> Any:
    """Return the part of `data` that `level` keeps.

    `frozen` prepares a value for hashing: it redacts secrets first, since the hash of a common password
    can be guessed.
    """
    row = events.kind_of(kind) if ours else None
    if level == "full" or (row is not None and row.keeps_all):
        return data
    kept_names = row.metadata if row is not None else frozenset()
    if not isinstance(data, dict):
        return digest(frozen(data)) if level == "standard" and data is not None else None
    # dict.items and not data.items: a subclass may override it.
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
    """Return a member, frozen; its name may be that of a secret."""
    settled = frozen({name: item})
    return settled.get(name, settled)


def digest(item: Any) -> Any:
    """Return a hash and a size in place of frozen content. Numbers and flags reveal little and stay."""
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

"""Move what is too large for a line into blobs, and back. Knows frozen values and blobs.

A spilled value stands as `{"$blob": SHA256, "size": N, "as": "text" | "bytes" | "json"}`.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from playhead.jsonbytes import Encode, decode_std
from playhead.tape.blobs import THRESHOLD, pull, push


def spill(run: Path, frozen: Any, encode: Encode) -> bytes:
    """`frozen` as JSON of at most 64 KiB or so, its large parts in blobs."""
    small = _leaves(run, frozen)
    encoded = encode(small)
    if len(encoded) <= THRESHOLD:
        return encoded
    if type(small) is not dict or next(iter(small), "")[:1] == "$":
        return encode(_blob(run, encoded, "json"))
    # Many small leaves: members go, largest first, so that the ones that say what happened stay.
    sizes = {name: len(encode(item)) for name, item in small.items()}
    total = len(encoded)
    for name in sorted(sizes, key=lambda name: sizes[name], reverse=True):
        small[name] = _blob(run, encode(small[name]), "json")
        total -= sizes[name] - 110
        if total <= THRESHOLD:
            return encode(small)
    return encode(_blob(run, encode(small), "json"))


def unspill(run: Path, frozen: Any) -> Any:
    """The inverse: every blob back in its place."""
    if type(frozen) is list:
        return [unspill(run, item) for item in frozen]
    if type(frozen) is not dict:
        return frozen
    if "$blob" not in frozen:
        return {name: unspill(run, item) for name, item in frozen.items()}
    payload = pull(run, str(frozen["$blob"]))
    kind = frozen.get("as")
    if kind == "text":
        return payload.decode("utf-8", "replace")
    if kind == "bytes":
        return {"$bytes": base64.b64encode(payload).decode()}
    return unspill(run, decode_std(payload))


def _leaves(run: Path, frozen: Any) -> Any:
    if type(frozen) is str:
        return _blob(run, frozen.encode(), "text") if len(frozen) > THRESHOLD else frozen
    if type(frozen) is list:
        return [_leaves(run, item) for item in frozen]
    if type(frozen) is not dict:
        return frozen
    raw = frozen.get("$bytes")
    if type(raw) is str and len(raw) > THRESHOLD:
        return _blob(run, base64.b64decode(raw), "bytes")
    return {name: _leaves(run, item) for name, item in frozen.items()}


def _blob(run: Path, payload: bytes, kind: str) -> dict[str, Any]:
    return {"$blob": push(run, payload), "size": len(payload), "as": kind}

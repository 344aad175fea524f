"""Differences between two versions of a file, by blocks. Knows bytes only.

Git rewrites its index (4.5 MB in a repository of 50,000 files) at every commit; logs grow at their end.
A block of the new version is looked up at the same offset in the old one, and at that offset moved by
the difference in length: that finds changes in place, appended data and one inserted or removed part.
"""

from __future__ import annotations

import struct

_BLOCK = 1024
_COPY = struct.Struct(">BII")
_DATA = struct.Struct(">BI")


def encode_delta(old: bytes, new: bytes) -> bytes:
    """Instructions that make `new` from `old`."""
    parts: list[bytes] = []
    shift = len(old) - len(new)
    start = 0  # of the bytes that are not in the old version
    at = 0
    while at < len(new):
        block = new[at : at + _BLOCK]
        source = next(
            (o for o in (at, at + shift) if o >= 0 and old[o : o + len(block)] == block), None
        )
        if source is None:
            at += len(block)
            continue
        if start < at:
            parts.append(_DATA.pack(1, at - start) + new[start:at])
        length = _common(old, source, new, at)
        parts.append(_COPY.pack(0, source, length))
        at += length
        start = at
    if start < len(new):
        parts.append(_DATA.pack(1, len(new) - start) + new[start:])
    return b"".join(parts)


def _common(old: bytes, source: int, new: bytes, at: int) -> int:
    """How many bytes are equal from here on, in steps that grow and shrink again."""
    length, step = 0, _BLOCK
    while at + length < len(new):
        piece = new[at + length : at + length + step]
        if old[source + length : source + length + len(piece)] == piece:
            length += len(piece)
            step *= 2
        elif step <= _BLOCK:
            break
        else:
            step //= 2
    return length


def apply_delta(old: bytes, delta: bytes) -> bytes:
    """ValueError if the instructions do not fit."""
    parts: list[bytes] = []
    at = 0
    try:
        while at < len(delta):
            if delta[at] == 0:
                _, source, length = _COPY.unpack_from(delta, at)
                at += _COPY.size
                parts.append(old[source : source + length])
            else:
                _, length = _DATA.unpack_from(delta, at)
                at += _DATA.size
                parts.append(delta[at : at + length])
                at += length
    except struct.error as error:
        raise ValueError(f"a delta ends early ({error})") from None
    return b"".join(parts)

"""Blobs of one run in one append-only file, plain, compressed or as deltas. Does not know which blobs a store has.

A pack starts with a magic word, then has one record per blob:

    KIND(1) DEPTH(1) SHA256(32) BASE(32) STORED(4) SIZE(4) PAYLOAD

`KIND` is 0 for plain bytes, 1 for zlib, 2 for a zlib delta against the blob `BASE`. Small files are packed because
a file of its own takes a whole disk block. A record is one write(2): a killed recorder leaves a torn last record,
which readers ignore.

Deltas work by blocks: Git rewrites its index (4.5 MB in a repository of 50,000 files) at every commit, and logs grow
at their end. A block of the new version is looked up at the same offset in the old one, and at that offset shifted
by the difference in length: this finds changes in place, appended data and one inserted or removed part.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from playhead.errors import TapeDamaged
from playhead.host.private_files import file_of

_BLOCK = 1024
_COPY = struct.Struct(">BII")
_DATA = struct.Struct(">BI")


def encode_delta(old: bytes, new: bytes) -> bytes:
    """Return instructions that make `new` from `old`."""
    parts: list[bytes] = []
    shift = len(old) - len(new)
    start = 0  # the start of the bytes that are not in the old version
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
    """Return how many bytes are equal from here on. Compares in steps that grow while they match, then shrink."""
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
    """Apply instructions of `encode_delta`. ValueError: they do not fit."""
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


MAGIC = b"PLAYHEAD PACK 1\n"
PLAIN, DEFLATED, DELTA = range(3)
NO_BASE = bytes(32)
_CLEARLY_SMALLER = 16
_HEAD = struct.Struct(">BB32s32sII")


class Record(NamedTuple):
    """The place of a blob in a pack, and its encoding."""

    kind: int
    depth: int
    digest: bytes
    base: bytes
    offset: int
    stored: int
    size: int

    @property
    def end(self) -> int:
        return self.offset + _HEAD.size + self.stored


class PackWriter:
    """Appends records. OSError: the disk is full, and nothing of the record is left."""

    def __init__(self, path: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._fd = os.open(path, flags, 0o600)
        self.size = os.fstat(self._fd).st_size
        if not self.size:
            os.write(self._fd, MAGIC)
            self.size = len(MAGIC)

    def add(self, digest: bytes, content: bytes, delta: tuple[bytes, bytes, int] | None) -> Record:
        """Store a blob; `delta` is the base, the instructions and the depth of the chain."""
        kind, base, depth, payload = DELTA, NO_BASE, 0, b""
        if delta is not None:
            base, instructions, depth = delta
            payload = zlib.compress(instructions, 1)
        # Compressing the content to compare sizes costs 60 ms for the index of a large repository, at every commit. So
        # a delta this small is used without the comparison.
        if delta is None or len(payload) * _CLEARLY_SMALLER > len(content):
            whole = zlib.compress(content, 1)
            if delta is None or len(payload) * 2 >= len(whole):
                kind, base, depth, payload = DEFLATED, NO_BASE, 0, whole
        if kind == DEFLATED and len(payload) >= len(content):
            kind, payload = PLAIN, content
        head = _HEAD.pack(kind, depth, digest, base, len(payload), len(content))
        record = Record(kind, depth, digest, base, self.size, len(payload), len(content))
        written = os.write(self._fd, head + payload)
        if written != len(head) + len(payload):
            os.ftruncate(self._fd, self.size)
            raise OSError(28, "the disk took only part of a blob")
        self.size = record.end
        return record

    def close(self) -> None:
        os.close(self._fd)


def read_records(path: str, start: int = 0) -> Iterator[Record]:
    """Yield the whole records from an offset on. A file that is not a pack yields nothing."""
    try:
        file = file_of(path)
    except FileNotFoundError:
        return
    with file:
        size = os.fstat(file.fileno()).st_size
        if file.read(len(MAGIC)) != MAGIC:
            return
        at = max(start, len(MAGIC))
        while at + _HEAD.size <= size:
            file.seek(at)
            kind, depth, digest, base, stored, plain = _HEAD.unpack(file.read(_HEAD.size))
            record = Record(kind, depth, digest, base, at, stored, plain)
            if kind > DELTA or record.end > size:
                return
            yield record
            at = record.end


def read_record(path: str, offset: int) -> tuple[Record, bytes]:
    """Return one record and its inflated payload. TapeDamaged: it is not there."""
    try:
        with file_of(path) as file:
            file.seek(offset)
            head = file.read(_HEAD.size)
            kind, depth, digest, base, stored, size = _HEAD.unpack(head)
            payload = file.read(stored)
        plain = payload if kind == PLAIN else zlib.decompress(payload)
    except (OSError, ValueError, struct.error, zlib.error) as error:
        name = os.path.basename(path)
        raise TapeDamaged(f"A blob in the pack {name} cannot be read ({error}).") from None
    if len(payload) != stored or kind > DELTA:
        raise TapeDamaged(f"A blob in the pack {os.path.basename(path)} ends early.")
    return Record(kind, depth, digest, base, offset, stored, size), plain

"""Read a git repository without git: which files its index tracks, and the objects of its packs.

Knows the formats of `index` (versions 2 to 4), pack files and their indexes (version 2), with SHA-1 names.
Everything else reads as "not known": the caller then stores the content itself.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable, Mapping

_ENTRY = struct.Struct(">10I20sH")
_OFFSET_DELTA, _REF_DELTA = 6, 7
_INFLATE = 1 << 16


def tracked_files(index: bytes) -> dict[bytes, bytes]:
    """Path → object name (20 bytes) of the files in `.git/index`; empty if it cannot be read."""
    try:
        return _tracked(index)
    except (struct.error, IndexError, ValueError):
        return {}


def _tracked(index: bytes) -> dict[bytes, bytes]:
    signature, version, count = struct.unpack_from(">4sII", index)
    if signature != b"DIRC" or not 2 <= version <= 4:
        return {}
    found: dict[bytes, bytes] = {}
    at, previous = 12, b""
    for _ in range(count):
        *_, name, flags = _ENTRY.unpack_from(index, at)
        start = at + _ENTRY.size + (2 if flags & 0x4000 else 0)
        if version == 4:
            removed, start = _varint(index, start)
            end = index.index(b"\0", start)
            path = previous[: len(previous) - removed] + index[start:end]
            at, previous = end + 1, path
        else:
            length = flags & 0xFFF
            end = start + length if length < 0xFFF else index.index(b"\0", start)
            path = index[start:end]
            at += (end - at + 8) & ~7
        found[path] = name
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The offset encoding of index version 4 and of packs."""
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at + 1


def blob_name(content: bytes) -> bytes:
    """The name that git gives to this content."""
    digest = hashlib.sha1(b"blob %d\0" % len(content), usedforsecurity=False)
    digest.update(content)
    return digest.digest()


def object_names(index: bytes) -> frozenset[bytes]:
    """All objects of a pack, from its index."""
    if index[:8] != b"\xfftOc\0\0\0\2":
        return frozenset()
    (count,) = struct.unpack_from(">I", index, 8 + 255 * 4)
    start = 8 + 256 * 4
    return frozenset(index[at : at + 20] for at in range(start, start + 20 * count, 20))


class Pack:
    """Objects of one pack. `read` returns bytes of the pack at an offset, with a length."""

    def __init__(self, index: bytes, read: Callable[[int, int], bytes]) -> None:
        self._index = index
        self._read = read
        (self._count,) = struct.unpack_from(">I", index, 8 + 255 * 4)

    def find(self, name: bytes) -> int | None:
        """The offset of an object."""
        first = 8 + 256 * 4
        position = self._bisect(first, name)
        if self._index[first + 20 * position : first + 20 * position + 20] != name:
            return None
        offsets = first + 24 * self._count
        (offset,) = struct.unpack_from(">I", self._index, offsets + 4 * position)
        if offset & 0x80000000:
            large = offsets + 4 * self._count + 8 * (offset & 0x7FFFFFFF)
            (offset,) = struct.unpack_from(">Q", self._index, large)
        return int(offset)

    def read(self, offset: int, other: Callable[[bytes], bytes]) -> bytes:
        """The content of the object at an offset; `other` finds the base of a delta by its name."""
        chain: list[bytes] = []
        content: bytes | None = None
        while content is None:
            head = self._read(offset, 64)
            byte, at = head[0], 1
            kind, size, shift = (byte >> 4) & 7, byte & 15, 4
            while byte & 0x80:
                byte = head[at]
                size |= (byte & 0x7F) << shift
                shift, at = shift + 7, at + 1
            if kind == _OFFSET_DELTA:
                back, at = _varint(head, at)
                chain.append(self._inflate(offset + at, size))
                offset -= back
            elif kind == _REF_DELTA:
                base = head[at : at + 20]
                chain.append(self._inflate(offset + at + 20, size))
                found = self.find(base)
                if found is None:
                    content = other(base)
                else:
                    offset = found
            else:
                content = self._inflate(offset + at, size)
        for delta in reversed(chain):
            content = _patched(content, delta)
        return content

    def _inflate(self, offset: int, size: int) -> bytes:
        inflater = zlib.decompressobj()
        parts = []
        while not inflater.eof:
            piece = self._read(offset, max(_INFLATE, min(size, 1 << 24)))
            if not piece:
                raise ValueError("a pack ends early")
            parts.append(inflater.decompress(piece))
            offset += len(piece)
        return b"".join(parts)

    def _bisect(self, first: int, name: bytes) -> int:
        low, high = 0, self._count
        while low < high:
            middle = (low + high) // 2
            if self._index[first + 20 * middle : first + 20 * middle + 20] < name:
                low = middle + 1
            else:
                high = middle
        return low


def inflate_loose(stored: bytes) -> bytes:
    """The content of a loose object, without its header."""
    return zlib.decompress(stored).partition(b"\0")[2]


def _patched(base: bytes, delta: bytes) -> bytes:
    _, at = _size(delta, 0)
    _, at = _size(delta, at)
    parts = []
    while at < len(delta):
        code = delta[at]
        at += 1
        if not code & 0x80:
            parts.append(delta[at : at + code])
            at += code
            continue
        numbers = [0] * 7
        for bit in range(7):
            if code & (1 << bit):
                numbers[bit] = delta[at]
                at += 1
        offset = int.from_bytes(bytes(numbers[:4]), "little")
        size = int.from_bytes(bytes(numbers[4:]), "little") or 0x10000
        parts.append(base[offset : offset + size])
    return b"".join(parts)


def _size(delta: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = delta[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at


class GitObjects:
    """The objects of a recorded repository, read from the blobs of its `.git` folder.

    `paths` are the files under `.git/objects/` (relative to it); `read` gives a whole file, `part` a part.
    """

    def __init__(
        self,
        paths: Mapping[bytes, str],
        read: Callable[[str], bytes],
        part: Callable[[str, int, int], bytes],
    ) -> None:
        self._paths = paths
        self._read = read
        self._part = part
        self._packs: list[Pack] | None = None

    def content(self, name: bytes) -> bytes:
        """Return the content of an object. ValueError: the repository does not have it."""
        text = name.hex().encode()
        loose = self._paths.get(text[:2] + b"/" + text[2:])
        if loose is not None:
            return inflate_loose(self._read(loose))
        for pack in self._all_packs():
            offset = pack.find(name)
            if offset is not None:
                return pack.read(offset, self.content)
        raise ValueError(f"object {name.hex()} is missing from the recorded repository")

    def _all_packs(self) -> list[Pack]:
        if self._packs is None:
            self._packs = []
            for path, blob in self._paths.items():
                data = self._paths.get(path[:-4] + b".pack")
                if path.startswith(b"pack/") and path.endswith(b".idx") and data is not None:
                    self._packs.append(Pack(self._read(blob), self._reader(data)))
        return self._packs

    def _reader(self, blob: str) -> Callable[[int, int], bytes]:
        return lambda offset, length: self._part(blob, offset, length)

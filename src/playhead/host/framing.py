"""Length-prefixed messages on a stream socket: a letter, a length, bytes. Knows the framing; not what the
letters mean.

All processes of Playhead's own speak it: the launcher with its sidecar, and shims (in C and in Python) with
the sidecar. The length is big-endian, so that the C program packs it with `htonl`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_HEAD = struct.Struct(">cI")


def frame(letter: bytes, payload: bytes = b"") -> bytes:
    """One message as bytes."""
    return _HEAD.pack(letter, len(payload)) + payload


def take_frames(buffer: bytearray) -> Iterator[tuple[bytes, bytes]]:
    """Each complete message, removed from the buffer; an incomplete one stays."""
    while len(buffer) >= _HEAD.size:
        letter, size = _HEAD.unpack_from(buffer)
        end = _HEAD.size + size
        if len(buffer) < end:
            return
        payload = bytes(memoryview(buffer)[_HEAD.size : end])
        del buffer[:end]
        yield letter, payload

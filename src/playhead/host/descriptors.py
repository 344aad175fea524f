"""Pass messages and descriptors between Playhead's own processes.

A forked child of the launcher keeps only the descriptors it needs (`keep_only`). Messages on a stream socket are a
letter, a length and bytes: the launcher and the shims (in C and in Python) use this framing with the sidecar. The
length is big-endian, so that the C program packs it with `htonl`.
"""

from __future__ import annotations

import gc
import os
import struct
from collections.abc import Iterator


def keep_only(*kept: int) -> None:
    """Close all descriptors except these: a process that waits for the end of a pipe must not wait for us.

    The parent's objects are not finalised: garbage collection here would close descriptor numbers that other files have
    by now.
    """
    gc.freeze()
    for first, end in _gaps(kept):
        os.closerange(first, end)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)


def _gaps(kept: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of open descriptors between those that are kept."""
    try:
        limit = max(map(int, os.listdir("/dev/fd"))) + 1
    except OSError:  # a bare container lacks this link
        limit = min(os.sysconf("SC_OPEN_MAX"), _MOST)
    first = 0
    for one in sorted(kept):
        yield first, one
        first = one + 1
    yield first, limit


# If the open descriptors cannot be listed. Linux closes a range by one system call.
_MOST = 1 << 20
_HEAD = struct.Struct(">cI")


def frame(letter: bytes, payload: bytes = b"") -> bytes:
    """Return one message as bytes."""
    return _HEAD.pack(letter, len(payload)) + payload


def take_frames(buffer: bytearray) -> Iterator[tuple[bytes, bytes]]:
    """Yield each complete message and remove it from the buffer; an incomplete one stays."""
    while len(buffer) >= _HEAD.size:
        letter, size = _HEAD.unpack_from(buffer)
        end = _HEAD.size + size
        if len(buffer) < end:
            return
        payload = bytes(memoryview(buffer)[_HEAD.size : end])
        del buffer[:end]
        yield letter, payload

"""Compress and decompress one zstd frame: the only door to zstandard. Knows bytes; not tapes.

Sealed tapes may have to be read inside an agent, which has zstandard, or a Python that brings its
own (3.14), or neither: then the error says what to do instead.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from playhead.errors import TapeError

# Level 3: 31 % of the size at 7 × the cost of writing the event; higher levels cost more than they
# save on a tape that is mostly read once.
_LEVEL = 3


class FrameDamaged(ValueError):
    """These bytes are no frame of ours; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Codec:
    """Not to be shared between threads: the compressors behind it keep state."""

    compress: Callable[[bytes], bytes]
    # The frame, and the size that its header promises (see `frames`, which bounds it).
    decompress: Callable[[bytes, int], bytes]


def codec() -> Codec:
    """TapeError where this Python has no zstd at all."""
    try:
        import zstandard
    except ImportError:
        return _standard_library()
    compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
    decompressor = zstandard.ZstdDecompressor()

    def decompress(frame: bytes, size: int) -> bytes:
        try:
            return _of_size(decompressor.decompress(frame, max_output_size=size), size)
        except zstandard.ZstdError as error:
            raise FrameDamaged(str(error)) from None

    return Codec(compress=compressor.compress, decompress=decompress)


def _standard_library() -> Codec:
    try:
        zstd = importlib.import_module("compression.zstd")
    except ImportError:
        raise TapeError(
            "This tape is sealed, and this Python has no zstd to open it. "
            "Open it up with `playhead unseal RUN`, or record with --no-seal; "
            "`pip install zstandard` here works as well."
        ) from None
    options = {
        zstd.CompressionParameter.compression_level: _LEVEL,
        zstd.CompressionParameter.checksum_flag: 1,
    }

    def decompress(frame: bytes, size: int) -> bytes:
        try:
            return _of_size(zstd.ZstdDecompressor().decompress(frame, size + 1), size)
        except (zstd.ZstdError, EOFError) as error:
            raise FrameDamaged(str(error)) from None

    return Codec(
        compress=lambda raw: bytes(zstd.compress(raw, options=options)), decompress=decompress
    )


def _of_size(raw: bytes, size: int) -> bytes:
    if len(raw) != size:
        raise FrameDamaged(f"it holds {len(raw)} bytes, its header says {size}")
    return raw

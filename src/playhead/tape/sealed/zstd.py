"""zstd frames: compress, decompress, and find them in a file without decompressing (RFC 8878).

The only module that compresses with zstd. Knows bytes; not tapes.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO

from playhead.errors import TapeError
from playhead.tape.format import LONGEST_LINE

# Level 3: 31 % of the size at 7 × the cost of writing the event; higher levels cost more than they
# save on a tape that is mostly read once.
_LEVEL = 3


class FrameDamaged(ValueError):
    """The bytes are not a frame of ours; the message has the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Codec:
    """Compresses and decompresses frames. Not to be shared between threads: the compressors behind it keep state."""

    compress: Callable[[bytes], bytes]
    # The frame, and the size that its header promises (see `frames`, which bounds it).
    decompress: Callable[[bytes, int], bytes]


def codec() -> Codec:
    """Return a codec; raise TapeError if this Python has no zstd at all."""
    # Python 3.14's own module and its backport have the same interface; the backport takes 1 MB, zstandard 24 MB.
    with suppress(ImportError):
        return _codec(importlib.import_module("compression.zstd"))
    with suppress(ImportError):
        return _codec(importlib.import_module("backports.zstd"))
    try:
        import zstandard
    except ImportError:
        raise TapeError(
            "This tape is sealed, and this Python has no zstd to open it. "
            "Unpack it with `playhead unseal RUN`, or record with --no-seal; "
            "`pip install backports.zstd` here works as well."
        ) from None
    return _codec_of_zstandard(zstandard)


def _codec(zstd: Any) -> Codec:
    """Return the codec of Python 3.14's own module, or of its backport."""
    options = {
        zstd.CompressionParameter.compression_level: _LEVEL,
        zstd.CompressionParameter.checksum_flag: 1,
    }

    def decompress(frame: bytes, size: int) -> bytes:
        stream = zstd.ZstdDecompressor()
        try:
            # One byte more than promised, so that a longer content is noticed and still bounded.
            raw = _of_size(stream.decompress(frame, size + 1), size)
        except (zstd.ZstdError, EOFError) as error:
            raise FrameDamaged(str(error)) from None
        if not stream.eof:
            raise FrameDamaged("its end is missing")
        return raw

    return Codec(
        compress=lambda raw: bytes(zstd.compress(raw, options=options)), decompress=decompress
    )


def _codec_of_zstandard(zstandard: Any) -> Codec:
    """Return the codec of the older library, which may be the only one in an agent's Python."""
    compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
    decompressor = zstandard.ZstdDecompressor()

    def decompress(frame: bytes, size: int) -> bytes:
        try:
            return _of_size(decompressor.decompress(frame, max_output_size=size), size)
        except zstandard.ZstdError as error:
            raise FrameDamaged(str(error)) from None

    return Codec(compress=compressor.compress, decompress=decompress)


def _of_size(raw: bytes, size: int) -> bytes:
    if len(raw) != size:
        raise FrameDamaged(f"it holds {len(raw)} bytes, its header says {size}")
    return raw


MAGIC = b"\x28\xb5\x2f\xfd"
# The size of a frame: large enough to compress well, small enough to decompress for one event.
FRAME = 1024 * 1024
# A frame is closed by the line that fills it, so it may hold one line more.
MOST = FRAME + LONGEST_LINE + 1
_LONGEST_HEADER = 18
_BLOCK_HEADER = 3
# A block holds 128 KiB; without a bound, empty ones could keep us walking for hours.
_MOST_BLOCKS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ZstdFrame:
    """The place of a frame in its file."""

    offset: int
    size: int
    # Of the content.
    bytes: int


def walk(file: BinaryIO) -> Iterator[ZstdFrame | tuple[int, str]]:
    """Yield every frame of the file; (offset, why) for a range without a frame."""
    at = 0
    end = file.seek(0, 2)
    while at < end:
        try:
            frame = frame_at(file, at, end)
        except FrameDamaged as error:
            yield at, str(error)
            at = _next_magic(file, at + 1, end)
            continue
        yield frame
        at += frame.size


def read_frame(file: BinaryIO, frame: ZstdFrame) -> bytes:
    """Return the compressed bytes of a frame that `walk` or an index has found."""
    file.seek(frame.offset)
    return file.read(frame.size)


def frame_at(file: BinaryIO, at: int, end: int) -> ZstdFrame:
    """Return the frame that begins at `at` in a file of `end` bytes; raise FrameDamaged if there is none."""
    file.seek(at)
    header = file.read(_LONGEST_HEADER)
    if header[:4] != MAGIC or len(header) < 6:
        raise FrameDamaged("no frame begins here")
    flags = header[4]
    if flags & 0b11:
        raise FrameDamaged("its frame needs a dictionary")
    single = flags >> 5 & 1
    field = (single, 2, 4, 8)[flags >> 6]
    if not field:
        raise FrameDamaged("its frame has no content size")
    begin = 5 + (0 if single else 1)
    content = int.from_bytes(header[begin : begin + field], "little") + (256 if field == 2 else 0)
    if content > MOST:
        raise FrameDamaged(f"its frame says that it holds {content} bytes")
    stop = _end_of_blocks(file, at + begin + field, min(end, at + 2 * MOST))
    stop += 4 if flags >> 2 & 1 else 0
    if stop > end:
        raise FrameDamaged("its frame is cut off")
    return ZstdFrame(offset=at, size=stop - at, bytes=content)


def _end_of_blocks(file: BinaryIO, at: int, end: int) -> int:
    for _ in range(_MOST_BLOCKS):
        file.seek(at)
        fields = int.from_bytes(file.read(_BLOCK_HEADER), "little")
        last, kind, size = fields & 1, fields >> 1 & 3, fields >> 3
        at += _BLOCK_HEADER + (1 if kind == 1 else size)
        if at > end:
            raise FrameDamaged("its frame is cut off")
        if kind == 3:
            raise FrameDamaged("its frame has a block of an unknown type")
        if last:
            return at
    raise FrameDamaged(f"its frame has more than {_MOST_BLOCKS} blocks")


def _next_magic(file: BinaryIO, at: int, end: int) -> int:
    """Return the position where the next frame may begin; the end of the file if there is none."""
    while at < end:
        file.seek(at)
        piece = file.read(FRAME)
        found = piece.find(MAGIC)
        if found >= 0:
            return at + found
        # The magic number may cross the boundary of two pieces.
        at += max(len(piece) - len(MAGIC) + 1, 1)
    return end

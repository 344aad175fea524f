"""Read a sealed tape: all segments in one zstd file. Knows frames and their index; not how they
were made (see `seal`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

from playhead.errors import StoreError
from playhead.events import Damage
from playhead.tape.sealed.seal_index import FILE, Index, IndexedFrame, Indexer
from playhead.tape.sealed.zstd import FrameDamaged, codec
from playhead.tape.sealed.zstd_frames import Frame, frame_at, read_frame, walk

Report = Callable[[Damage], None]


def build_index(run: Path, report: Report) -> Index:
    """The index made anew from the sealed file."""
    indexer = Indexer()
    for frame, compressed, raw in frames_of(run / FILE, report):
        indexer.add(frame, compressed, raw)
    return dataclasses.replace(indexer.index(), compressed=(run / FILE).stat().st_size)


def frames_of(path: Path, report: Report) -> Iterator[tuple[Frame, bytes, bytes]]:
    """Each frame, compressed and not. What cannot be opened is reported and passed over whole: half
    a frame has no checksum, so its lines might be anything.
    """
    decompress = codec().decompress
    number = 0
    try:
        with open(path, "rb") as file:
            for found in walk(file):
                number += 1
                if isinstance(found, tuple):
                    report(_damage(path, number, *found))
                    continue
                compressed = read_frame(file, found)
                try:
                    raw = decompress(compressed, found.bytes)
                except FrameDamaged as error:
                    report(_damage(path, number, found.offset, f"its frame is damaged: {error}"))
                    continue
                yield found, compressed, raw
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({error.strerror or error}).") from error


def open_frame(path: Path, frame: IndexedFrame) -> bytes:
    """The content of one frame; FrameDamaged if it is not what the index says."""
    try:
        with open(path, "rb") as file:
            found = frame_at(file, frame.offset, file.seek(0, 2))
            if (found.size, found.bytes) != (frame.size, frame.bytes):
                raise FrameDamaged("it is not the frame that the index speaks of")
            compressed = read_frame(file, found)
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({error.strerror or error}).") from error
    return codec().decompress(compressed, frame.bytes)


def _damage(path: Path, number: int, offset: int, why: str) -> Damage:
    return Damage(segment=path.name, line=number, offset=offset, why=why)

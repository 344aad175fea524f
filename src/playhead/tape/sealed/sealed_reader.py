"""Read and check a sealed tape: all segments in one zstd file, with an index of its frames.

Knows frames, their index and the checksum chain of each segment; not how they were made (see `seal`).
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

from playhead.errors import StoreError
from playhead.events import Damage, Event
from playhead.tape.reading.chain import Chain
from playhead.tape.reading.partial_run import open_sealed
from playhead.tape.reading.segment_rows import Report, blocks, too_damaged
from playhead.tape.sealed.seal_index import (
    FILE,
    INDEX,
    IndexedFrame,
    Indexer,
    SealIndex,
    read_index,
)
from playhead.tape.sealed.zstd import FrameDamaged, ZstdFrame, codec, frame_at, read_frame, walk

# Real tapes reach 50: each frame holds a megabyte, and every line in it has numbers and a checksum of its own.
_MOST_RATIO = 200
_SURELY_FINE = 32 * 1024 * 1024


def build_index(run: Path, report: Report) -> SealIndex:
    """Rebuild the index from the sealed file."""
    indexer = Indexer()
    for frame, compressed, raw in frames_of(run / FILE, report):
        indexer.add(frame, compressed, raw)
    return dataclasses.replace(indexer.index(), compressed=(run / FILE).stat().st_size)


def frames_of(path: Path, report: Report) -> Iterator[tuple[ZstdFrame, bytes, bytes]]:
    """Yield each frame, compressed and decompressed. A frame that cannot be opened is reported and skipped as a whole:
    half a frame has no checksum, so its lines cannot be trusted.
    """
    decompress = codec().decompress
    number = size = content = 0
    try:
        with open_sealed(path) as file:
            for found in walk(file):
                number += 1
                if isinstance(found, tuple):
                    report(_damage(path, number, *found))
                    continue
                size, content = size + found.size, content + found.bytes
                if content > _SURELY_FINE and content > _MOST_RATIO * size:
                    raise too_damaged(
                        path.name, f"expands to more than {_MOST_RATIO} times its size"
                    )
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
    """Return the content of one frame; raise FrameDamaged if it does not match the index."""
    try:
        with open_sealed(path) as file:
            found = frame_at(file, frame.offset, file.seek(0, 2))
            if (found.size, found.bytes) != (frame.size, frame.bytes):
                raise FrameDamaged("it is not the frame that the index names")
            compressed = read_frame(file, found)
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({error.strerror or error}).") from error
    return codec().decompress(compressed, frame.bytes)


def _damage(path: Path, number: int, offset: int, why: str) -> Damage:
    return Damage(segment=path.name, line=number, offset=offset, why=why)


Look = Callable[[Event, bytes], None]


def check_sealed(
    run: Path, chains: dict[str, Chain], plain: frozenset[str], look: Look, report: Report
) -> None:
    """Check every frame, line and number. Segments in `plain` are read from files of their own."""
    indexer = Indexer()
    row = offset = 0
    for frame, compressed, raw in frames_of(run / FILE, report):
        for event, line in indexer.add(frame, compressed, raw):
            row += 1
            if event is None:
                why = "this row is not an event"
                report(Damage(segment=FILE, line=row, offset=offset, why=why))
            elif event.segment in chains:
                chains[event.segment].event(event, line)
                look(event, line)
            elif event.segment not in plain:
                why = f"it belongs to segment {event.segment[:80]!r}, which the index does not know"
                report(Damage(segment=FILE, line=row, offset=offset, why=why))
            offset += len(line) + 1
    for chain in chains.values():
        chain.close()
    index = read_index(run)
    if isinstance(index, SealIndex):
        _compare(index, indexer.index(), _sha256(run / FILE), report)
    else:
        report(Damage(segment=INDEX, line=0, offset=0, why=index))


def _compare(index: SealIndex, found: SealIndex, sha256: str, report: Report) -> None:
    if index.sha256 != sha256:
        why = f"altered: its SHA-256 is {sha256}, the index says {index.sha256[:64]}"
        report(Damage(segment=FILE, line=0, offset=0, why=why))
    for one in dataclasses.fields(SealIndex):
        said, is_so = getattr(index, one.name), getattr(found, one.name)
        if one.name not in ("sha256", "format") and said != is_so:
            shown = f": {said!r}, not {is_so!r}" if not isinstance(said, list) else ""
            why = f"its `{one.name}` does not match {FILE}{shown}"[:200]
            report(Damage(segment=INDEX, line=0, offset=0, why=why))


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    for block in blocks(path):
        digest.update(block)
    return digest.hexdigest()

"""The segments of a tape, and the facts of their first lines. Knows the run's folder, plain and sealed; does not
know what follows the first line.

A segment is read from its own file if there is one, and from the sealed file otherwise: so an interrupted
sealing or unsealing loses nothing, and a run that was resumed after it was sealed is one tape.
"""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING

from playhead import clock
from playhead.errors import StoreError, TapeTooNew
from playhead.events import Damage
from playhead.host.later import Later
from playhead.tape.format import (
    FORMAT_VERSION,
    INDEX_FILE,
    SEALED_FILE,
    Decode,
    can_migrate,
    decoder,
    decoder_for,
    newer_format,
    segment_name,
)
from playhead.tape.reading.segment_rows import Report, Strand, batches, blocks, read_segment
from playhead.tape.sealed.sealed_segment import SealedSegment, first_of

if TYPE_CHECKING:
    from playhead.tape.sealed import seal_index, sealed_reader
    from playhead.tape.sealed.seal_index import SealIndex
else:
    # Most tapes are plain: they are read without zstd, hashlib and the classes of the index.
    seal_index = Later("playhead.tape.sealed.seal_index")
    sealed_reader = Later("playhead.tape.sealed.sealed_reader")

NO_FILE = "it is not a regular file"
_LOOKS = 5
# Smaller segments are decoded without msgspec; see `format.decoder`.
_SMALL = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One segment of the tape, usually of one process."""

    name: str
    path: Path
    sealed: bool
    # The run that its first line names.
    run: str
    generation: int
    format: int
    pid: int
    host: str
    birth: str
    # Of its first event: with generation and pid, its place among the others.
    mono: int

    @property
    def order(self) -> tuple[int, int, int]:
        return (self.generation, self.mono, self.pid)


def is_alive(segment: Segment) -> bool:
    """Return whether the process that writes a segment still runs here: a child may outlive its run."""
    if segment.sealed or segment.host != clock.host():
        return False
    birth = clock.process_birth(segment.pid)
    return birth is not None and segment.birth in ("", birth)


def plain_decoder(segment: Segment) -> Decode:
    """Return the decoder for a segment that has a file of its own."""
    try:
        few = segment.path.stat().st_size < _SMALL
    except OSError:
        few = False
    return decoder_for(segment.format, few=few)


class Segments:
    """The segments of a run as they are now. A first line never changes, so it is read once."""

    def __init__(self, run: Path, report: Report) -> None:
        self._run = run
        self._report = report
        self._known: dict[str, Segment] = {}
        self._index: tuple[object, SealIndex | None] = (None, None)

    def now(self) -> list[Segment]:
        """Return the segments in the order in which they began."""
        for _ in range(_LOOKS):
            try:
                return self._look()
            except StoreError:
                continue  # removed between listing and opening: the run is being sealed
        return self._look()

    def _look(self) -> list[Segment]:
        found = {
            name: self._known.get(name) or self._opened(name, path)
            for name, path in segment_files(self._run, self._report).items()
        }
        index = self.index()
        for one in index.segments if index else []:
            if one.name not in found:
                found[one.name] = _checked(one, self._run / SEALED_FILE, self._report, sealed=True)
        return sorted(found.values(), key=lambda segment: segment.order)

    def index(self) -> SealIndex | None:
        """The index of the sealed file, rebuilt if necessary; None: nothing is sealed."""
        state = [_state(f"{self._run}/{name}") for name in (SEALED_FILE, INDEX_FILE)]
        if self._index[0] != state:
            self._index = (state, None if state[0] is None else self._read_index())
        return self._index[1]

    def _read_index(self) -> SealIndex:
        index = seal_index.read_index(self._run)
        if not isinstance(index, str):
            return index
        self._report(Damage(segment=INDEX_FILE, line=0, offset=0, why=index))
        return sealed_reader.build_index(self._run, self._report)

    def _opened(self, name: str, path: Path) -> Segment:
        segment = open_segment(path, self._report)
        if segment.mono:  # a process that has just started has not written its first line
            self._known[name] = segment
        return segment


def _state(path: str) -> tuple[int, ...] | None:
    try:
        state = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return (state.st_ino, state.st_size, state.st_mtime_ns) if S_ISREG(state.st_mode) else None


def segment_files(run: Path, report: Report) -> dict[str, Path]:
    """Return the file of every plain segment by name."""
    found = {}
    try:
        with os.scandir(run) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                name = segment_name(entry.name)
                if name is None:
                    continue
                # An untrusted tape may hold a pipe or a link to a device: neither is opened.
                if entry.is_file(follow_symlinks=False):
                    found[name] = run / entry.name
                else:
                    report(Damage(segment=name, line=0, offset=0, why=NO_FILE))
    except OSError as error:
        raise StoreError(f"{run} cannot be read ({error.strerror or error}).") from error
    return found


def open_segment(path: Path, report: Report) -> Segment:
    """Open a segment and read the facts of its first event."""
    name = segment_name(path.name) or path.name
    source = batches(blocks(path))
    first = next(source, None)
    if first is not None and first.lines:
        newer = newer_format(first.lines[0])
        if newer is not None:
            raise TapeTooNew(found=newer, known=FORMAT_VERSION)
    # Damage before the first whole event is reported when the segment is read.
    whole = source if first is None else chain([first], source)
    rows = read_segment(whole, Strand(name), decoder(few=True), lambda _: None)
    for event, _, _ in rows:
        header = first_of(name, event)
        if header.format > FORMAT_VERSION:  # the line is damaged: a valid one was refused above
            header = dataclasses.replace(header, format=FORMAT_VERSION)
        return _checked(header, path, report, sealed=False)
    return _checked(SealedSegment(name=name), path, report, sealed=False)


def _checked(one: SealedSegment, path: Path, report: Report, *, sealed: bool) -> Segment:
    version = one.format
    if version > FORMAT_VERSION:
        raise TapeTooNew(found=version, known=FORMAT_VERSION)
    if not can_migrate(version):
        why = f"it claims format {version}, which does not exist; read as {FORMAT_VERSION}"
        report(Damage(segment=one.name, line=1, offset=0, why=why))
        version = FORMAT_VERSION
    return Segment(
        name=one.name,
        path=path,
        sealed=sealed,
        run=one.run,
        generation=one.generation,
        format=version,
        pid=one.pid,
        host=one.host,
        birth=one.birth,
        mono=one.mono,
    )

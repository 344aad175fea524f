"""The index of a sealed tape: which frame holds which events. Knows one JSON file; does not know how frames are opened.

The index only saves time: all of it can be rebuilt from the sealed file.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playhead.errors import TapeTooNew
from playhead.events import Event
from playhead.host.private_files import create_part, read_regular
from playhead.tape.format import (
    FORMAT_VERSION,
    INDEX_FILE,
    SEALED_FILE,
    NotAnEvent,
    decoder,
    newer_format,
)
from playhead.tape.reading.segment_rows import MOST_UNREADABLE, too_damaged
from playhead.tape.sealed.sealed_segment import SealedSegment, first_of
from playhead.tape.sealed.zstd import MOST, ZstdFrame

FILE = SEALED_FILE
INDEX = INDEX_FILE
_LARGEST_INDEX = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedFrame:
    """A frame, and which events are in it."""

    offset: int
    size: int
    bytes: int
    # The number of its first line in the whole file, from 0, and how many there are.
    row: int
    rows: int
    # Segment → first and last seq in this frame.
    seqs: dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SealIndex:
    """The facts about a sealed file that are known without opening a frame."""

    format: int = FORMAT_VERSION
    events: int = 0
    # Of the lines, and of the file.
    bytes: int = 0
    compressed: int = 0
    sha256: str = ""
    raw_sha256: str = ""
    segments: list[SealedSegment] = field(default_factory=list)
    frames: list[IndexedFrame] = field(default_factory=list)


class _Tally:
    """Counts of one segment so far."""

    __slots__ = ("bytes", "events", "last", "start")

    def __init__(self, start: SealedSegment) -> None:
        self.start = start
        self.last = self.events = self.bytes = 0

    def segment(self) -> SealedSegment:
        return dataclasses.replace(self.start, last=self.last, events=self.events, bytes=self.bytes)


class Indexer:
    """Builds the index while frames are written or read."""

    def __init__(self) -> None:
        self._decode = decoder()
        self._tallies: dict[str, _Tally] = {}
        self._frames: list[IndexedFrame] = []
        self._hash = hashlib.sha256()
        self._raw = hashlib.sha256()
        self._rows = 0
        self._unreadable = 0

    def add(
        self, frame: ZstdFrame, compressed: bytes, raw: bytes
    ) -> list[tuple[Event | None, bytes]]:
        """Add a frame and return its rows; the event is None for a line that holds no event."""
        rows = []
        for line in raw.split(b"\n")[:-1]:
            event = self._event(line)
            rows.append((event, line))
            self._unreadable += event is None
            if self._unreadable > MOST_UNREADABLE:
                why = f"has more than {MOST_UNREADABLE:,} lines that are not events"
                raise too_damaged(FILE, why)
        seqs: dict[str, tuple[int, int]] = {}
        for event, line in rows:
            if event is not None:
                low, high = seqs.get(event.segment, (event.seq, event.seq))
                seqs[event.segment] = (min(low, event.seq), max(high, event.seq))
                self._count(event.segment, event, len(line) + 1)
        self._frames.append(
            IndexedFrame(
                offset=frame.offset,
                size=frame.size,
                bytes=frame.bytes,
                row=self._rows,
                rows=len(rows),
                seqs=seqs,
            )
        )
        self._rows += len(rows)
        self._hash.update(compressed)
        self._raw.update(raw)
        return rows

    def index(self) -> SealIndex:
        return SealIndex(
            events=self._rows,
            bytes=sum(frame.bytes for frame in self._frames),
            compressed=sum(frame.size for frame in self._frames),
            sha256=self._hash.hexdigest(),
            raw_sha256=self._raw.hexdigest(),
            segments=[tally.segment() for tally in self._tallies.values()],
            frames=self._frames,
        )

    def _event(self, line: bytes) -> Event | None:
        try:
            return self._decode(line)
        except NotAnEvent:
            future = newer_format(line)
            if future is not None:
                raise TapeTooNew(found=future, known=FORMAT_VERSION) from None
            return None

    def _count(self, name: str, event: Event, size: int) -> None:
        tally = self._tallies.get(name)
        if tally is None:
            tally = self._tallies[name] = _Tally(first_of(name, event))
        tally.last = event.seq
        tally.events += 1
        tally.bytes += size


def write_index(run: Path, index: SealIndex) -> None:
    raw = json.dumps(dataclasses.asdict(index), ensure_ascii=False, separators=(",", ":")).encode()
    fd, part = create_part(run / INDEX)
    with open(fd, "wb") as file:
        file.write(raw + b"\n")
        file.flush()
        os.fsync(fd)
    os.replace(part, run / INDEX)


def read_index(run: Path) -> SealIndex | str:
    """Return the index if it is complete and matches the file beside it; else the reason."""
    try:
        members = json.loads(read_regular(run / INDEX, _LARGEST_INDEX))
        size = (run / FILE).stat().st_size
    except FileNotFoundError:
        return "it is missing"
    except (OSError, ValueError, RecursionError) as error:
        return f"it cannot be read ({error})"[:200]
    version = members.get("format") if isinstance(members, dict) else None
    if type(version) is int and version > FORMAT_VERSION:
        raise TapeTooNew(found=version, known=FORMAT_VERSION)
    try:
        index = _index(members)
    except (KeyError, TypeError, ValueError, AttributeError):
        return "it is not the index of a sealed tape"
    if index.compressed != size:
        return f"it describes a file of {index.compressed} bytes; {FILE} has {size}"
    return index


def _index(members: Any) -> SealIndex:
    segments = [SealedSegment(**_checked(SealedSegment, one)) for one in members["segments"]]
    frames = []
    for one in members["frames"]:
        seqs = {str(name): (_int(low), _int(high)) for name, (low, high) in one["seqs"].items()}
        frames.append(IndexedFrame(**{**_checked(IndexedFrame, one), "seqs": seqs}))
        if not 0 <= frames[-1].bytes <= MOST or frames[-1].offset < 0 or frames[-1].size < 0:
            raise ValueError("an impossible frame")
    return SealIndex(**{**_checked(SealIndex, members), "segments": segments, "frames": frames})


def _checked(kind: type, members: dict[str, Any]) -> dict[str, Any]:
    """Return the members that `kind` has, with checked types. Other members are ignored."""
    known = {}
    for one in dataclasses.fields(kind):
        value = members[one.name]
        if one.type == "int":
            _int(value)
        elif one.type == "str" and not isinstance(value, str):
            raise TypeError(one.name)
        known[one.name] = value
    return known


def _int(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError("expected a number")
    return value

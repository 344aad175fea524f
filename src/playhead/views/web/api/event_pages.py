"""Read the events of a tape page by page. Remembers where the last pages ended, so that the next one does not
read the tape from its start.

A cursor (`4711:120,4712:7`) is the last delivered seq of each segment. A plain number skips that many events
in the order of the tape, which is only stable while no other process writes to it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from playhead.story.event_filter import EventFilter, EventSelection
from playhead.tape.reader import Tape
from playhead.tape.reading.seek import roots
from playhead.tape.reading.segment_rows import Row
from playhead.views.web.api.api_responses import Problem

# The maximum size of a page: lines of a tape may have a megabyte each.
_MOST_BYTES = 8 * 1024 * 1024
# Each of them keeps a file open.
_MOST_BOOKMARKS = 32


@dataclass(slots=True, kw_only=True)
class _Reading:
    """An open tape. `ahead` was read to see whether more follows, and belongs to the next page."""

    rows: Iterator[Row]
    selection: EventSelection
    positions: dict[str, int]
    ahead: Row | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPage:
    """Lines of the tape, unchanged. `next` is None when nothing follows so far."""

    lines: list[bytes] = field(default_factory=list)
    next: str | None = None


class EventPages:
    """Open tapes at the positions of delivered pages; the least recently used are closed."""

    def __init__(self) -> None:
        self._bookmarks: OrderedDict[tuple[object, ...], _Reading] = OrderedDict()
        self._lock = Lock()

    def page(
        self, run: Path, stamp: str, wanted: EventFilter, *, after: str | None, limit: int
    ) -> EventPage:
        key = (run, stamp, wanted, after or "")
        with self._lock:
            reading = self._bookmarks.pop(key, None)
        if reading is None:
            reading = _opened(run, wanted, parse_cursor(after))
        lines = _taken(reading, limit)
        if reading.ahead is None:
            return EventPage(lines=lines)
        following = write_cursor(reading.positions)
        with self._lock:
            self._bookmarks[(run, stamp, wanted, following)] = reading
            if len(self._bookmarks) > _MOST_BOOKMARKS:
                self._bookmarks.popitem(last=False)
        return EventPage(lines=lines, next=following)


def _opened(run: Path, wanted: EventFilter, cursor: Cursor) -> _Reading:
    tape = Tape(run)
    selection = selection_of(tape, wanted)
    positions: dict[str, int] = {}
    rows = tape.rows()
    reading = _Reading(rows=rows, selection=selection, positions=positions)
    skip = cursor.skip
    for row in rows:
        event = row[0]
        if skip or event.seq <= cursor.positions.get(event.segment, -1):
            skip = max(0, skip - 1)
            positions[event.segment] = event.seq
            # The selection must see skipped calls: their chunks and outcomes may follow.
            selection.takes(event)
            continue
        if selection.takes(event):
            reading.ahead = row
            break
        positions[event.segment] = event.seq
    return reading


def _taken(reading: _Reading, limit: int) -> list[bytes]:
    lines: list[bytes] = []
    size = 0
    while reading.ahead is not None and len(lines) < limit and (not size or size < _MOST_BYTES):
        event, _, raw = reading.ahead
        reading.positions[event.segment] = event.seq
        lines.append(as_json(raw))
        size += len(raw)
        reading.ahead = _following(reading)
    return lines


def _following(reading: _Reading) -> Row | None:
    for row in reading.rows:
        if reading.selection.takes(row[0]):
            return row
        reading.positions[row[0].segment] = row[0].seq
    return None


def selection_of(tape: Tape, wanted: EventFilter) -> EventSelection:
    own = frozenset(segment.name for segment in roots(tape.segments()))
    return EventSelection(wanted, own)


def as_json(raw: bytes) -> bytes:
    """Return a line as valid UTF-8, so that it can be part of a JSON document."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace").encode()
    return raw


PATTERN = r"^(\d{1,12}|[^:,\s]{1,80}:\d{1,15}(,[^:,\s]{1,80}:\d{1,15})*)$"
LONGEST = 16_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """A position on a tape. `positions` (last seq by segment) takes precedence over `skip`."""

    positions: Mapping[str, int] = field(default_factory=dict)
    skip: int = 0


def parse_cursor(text: str | None) -> Cursor:
    if not text:
        return Cursor()
    if text.isdigit():
        return Cursor(skip=int(text[:12]))
    positions: dict[str, int] = {}
    for part in text[:LONGEST].split(","):
        segment, _, seq = part.rpartition(":")
        if not segment or not seq.isdecimal() or not seq.isascii():
            raise Problem(
                400, f"{text[:80]!r} is not a position on a tape.", "Use `next` unchanged."
            )
        positions[segment] = int(seq[:15])
    return Cursor(positions=positions)


def write_cursor(positions: Mapping[str, int]) -> str:
    return ",".join(f"{segment}:{seq}" for segment, seq in positions.items())

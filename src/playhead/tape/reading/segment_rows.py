"""Read one segment: bytes to lines in bounded memory, lines to events, and a list of the damage.

Knows sequence numbers and the longest line; not what an event means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from playhead.errors import StoreError, TapeDamaged
from playhead.events import GAP, SEGMENT_START, Damage, Event
from playhead.host.private_files import open_regular
from playhead.tape.format import LONGEST_LINE, Decode, NotAnEvent

# Measured on events of 4.5 KB: 64 and 128 KiB are level, 256 KiB and more cost some 8 % again.
BLOCK = 128 * 1024


class Batch(NamedTuple):
    """Consecutive lines, without their newlines.

    Batches are passed on instead of lines: one call for some fifty events.
    """

    lines: list[bytes]
    # The file ended before the newline of the only line here.
    torn: bool = False
    # The length of one line that was too long to be kept; `lines` is empty then.
    skipped: int = 0


def blocks(path: Path, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
    """Yield the bytes of a file from `start` up to `stop`; without `stop`, up to its current end."""
    try:
        with open(open_regular(path), "rb", buffering=0) as file:
            file.seek(start)
            left = -1 if stop is None else stop - start
            while left:
                block = file.read(BLOCK if left < 0 else min(BLOCK, left))
                if not block:
                    return
                left -= len(block) if left > 0 else 0
                yield block
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({error.strerror or error}).") from error


def batches(pieces: Iterable[bytes]) -> Iterator[Batch]:
    """Cut a stream of bytes into lines, holding at most one block and one line of it."""
    held: list[bytes] = []
    size = 0
    skipping = False
    for block in pieces:
        cut = block.rfind(b"\n") + 1
        if not cut:
            size += len(block)
            if size > _LONGEST_SKIPPED:
                raise too_damaged("This tape", f"has a line of more than {_LONGEST_SKIPPED} bytes")
            if skipping or size > LONGEST_LINE:
                skipping = True
                held.clear()
            else:
                held.append(block)
            continue
        first = 0
        if skipping:
            first = block.find(b"\n") + 1
            yield Batch(lines=[], skipped=size + first - 1)
            skipping = False
        held.append(block[first:cut])
        lines = b"".join(held).split(b"\n")
        lines.pop()
        if lines and len(lines[0]) > LONGEST_LINE:
            yield Batch(lines=[], skipped=len(lines.pop(0)))
        if lines:
            yield Batch(lines=lines)
        held = [block[cut:]]
        size = len(block) - cut
    if skipping:
        yield Batch(lines=[], skipped=size, torn=True)
    elif size:
        yield Batch(lines=[b"".join(held)], torn=True)


# The maximum number of damages in a list: a gigabyte of newlines would be a thousand million damaged lines, and a
# longer list does not help.
MOST = 1000
# Reading stops at more unreadable lines, and at a longer line: no accident makes such a tape, and an untrusted tape
# must not keep a reader busy for hours.
MOST_UNREADABLE = 10_000
_LONGEST_SKIPPED = 4 * LONGEST_LINE


def too_damaged(name: str, why: str) -> TapeDamaged:
    """Return the error for a tape that is too damaged to continue reading."""
    return TapeDamaged(
        f"{name[:80]} {why}: Playhead does not write such a file, so reading stops here."
    )


class Damages(list[Damage]):
    """A list with each damage once, however often the tape is read. `more` counts the damages that are not listed."""

    def __init__(self) -> None:
        super().__init__()
        self._known: set[Damage] = set()
        self.more = 0

    @property
    def total(self) -> int:
        return len(self) + self.more

    def report(self, damage: Damage) -> None:
        if damage in self._known:
            return
        if len(self) >= MOST:
            self.more += 1
            return
        self._known.add(damage)
        self.append(damage)


def pass_over(_: Damage) -> None:
    """Ignore the damage: for reading again after `verify` has reported it."""


Report = Callable[[Damage], None]
# An event, the number of its line in its segment, and the line itself without its newline.
Row = tuple[Event, int, bytes]


class Strand:
    """How far a segment has been read, and which seq is next."""

    __slots__ = ("_stray", "_unreadable", "following", "name", "number", "offset", "unread")

    def __init__(self, name: str) -> None:
        self.name = name
        # Lines and bytes so far; `number` already includes the current line.
        self.number = 0
        self.offset = 0
        self.following: int | None = None
        # Lines since the last event that could not be read.
        self.unread = 0
        self._stray = -1
        self._unreadable = 0

    def damage(self, why: str) -> Damage:
        return Damage(segment=self.name, line=self.number, offset=self.offset, why=why)

    def is_next(self, event: Event) -> bool:
        return event.seq == self.following and event.segment == self.name

    def misplaced(self, event: Event, report: Report) -> bool:
        """Report an event that is not the next one; False: the event is in its place."""
        stray = event.segment != self.name
        if stray:
            if self._stray != self.number - 1:  # a block of foreign lines is reported once
                report(self.damage(f"it belongs to segment {event.segment[:80]!r}"))
            self._stray = self.number
        why = self._why(event)
        if why is not None:
            report(self.damage(why))
        return stray or why is not None

    def _why(self, event: Event) -> str | None:
        if self.following is None:
            if event.kind == SEGMENT_START and not event.user:
                return None
            return f"the segment begins with {event.kind[:80]!r}: its start is missing"
        if event.seq < self.following:
            return f"seq {event.seq} comes after {self.following - 1}: moved or doubled"
        missing = event.seq - self.following - self.unread
        if missing <= 0:
            return None  # the lines that could not be read account for it
        said = "an event is" if missing == 1 else f"{missing} events are"
        return f"{said} missing before seq {event.seq}: removed or moved"

    def passed(self, event: Event, size: int) -> None:
        self.offset += size + 1
        self.unread = 0
        self.following = event.seq + 1 if event.kind != GAP else after_gap(event)

    def failed(self, size: int) -> None:
        self.offset += size + 1
        self.unread += 1
        self._unreadable += 1
        if self._unreadable > MOST_UNREADABLE:
            why = f"has more than {MOST_UNREADABLE:,} lines that are not events"
            raise too_damaged(self.name, why)


def after_gap(event: Event) -> int:
    """Return the seq after a gap: a repaired gap covers all the events that were lost there."""
    until = event.data.get("until") if isinstance(event.data, dict) else None
    return max(event.seq, until if type(until) is int else 0) + 1


def read_segment(
    source: Iterable[Batch], strand: Strand, decode: Decode, report: Report
) -> Iterator[Row]:
    """Yield the events of one segment."""
    for batch in source:
        if batch.skipped:
            skip(strand, batch, report)
        for raw in batch.lines:
            strand.number += 1
            try:
                event = decode(raw)
            except NotAnEvent as error:
                report(strand.damage(torn(raw) if batch.torn else str(error)))
                strand.failed(len(raw))
                continue
            if not strand.is_next(event):
                strand.misplaced(event, report)
            if batch.torn:
                report(strand.damage("the newline at its end is missing"))
            number = strand.number
            strand.passed(event, len(raw))
            yield event, number, raw


def read_merged(
    source: Iterable[Batch], file: str, decode: Decode, report: Report
) -> Iterator[Row]:
    """Yield the events of a file that holds all segments. A line that cannot be read belongs to no segment: it is
    counted as a row of the file.
    """
    whole = Strand(file)
    strands: dict[str, Strand] = {}
    for batch in source:
        if batch.skipped:
            skip(whole, batch, report)
        for raw in batch.lines:
            whole.number += 1
            try:
                event = decode(raw)
            except NotAnEvent as error:
                report(whole.damage(torn(raw) if batch.torn else str(error)))
                whole.failed(len(raw))
                continue
            whole.offset += len(raw) + 1
            name = event.segment
            strand = strands.get(name)
            if strand is None:
                strand = strands[name] = Strand(name)
            strand.number += 1
            if event.seq != strand.following:
                strand.misplaced(event, report)
            number = strand.number
            strand.passed(event, len(raw))
            yield event, number, raw


def skip(strand: Strand, batch: Batch, report: Report) -> None:
    """Pass over a line that was too long to be kept."""
    strand.number += 1
    limit = LONGEST_LINE // (1024 * 1024)
    report(strand.damage(f"it is {batch.skipped} bytes long, more than {limit} MiB: skipped"))
    strand.failed(batch.skipped)


def torn(raw: bytes) -> str:
    return f"torn: the last {len(raw)} bytes are the beginning of an event"

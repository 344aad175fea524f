"""Lines to events, in the order of one file, and what is wrong with them. Knows seqs and segments;
not files, and not checksums (see `chain`).

Whatever a line holds, reading goes on after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from playhead.events import GAP, SEGMENT_START, Damage, Event
from playhead.tape.format import LONGEST_LINE, Decode, NotAnEvent
from playhead.tape.lines import Batch

Report = Callable[[Damage], None]
# An event, the number of its line in its segment, and the line itself without its newline.
Row = tuple[Event, int, bytes]


class Strand:
    """How far a segment has been read, and which seq should come next."""

    __slots__ = ("_stray", "following", "name", "number", "offset", "unread")

    def __init__(self, name: str) -> None:
        self.name = name
        # Lines and bytes so far; `number` is already that of the line that is being looked at.
        self.number = 0
        self.offset = 0
        self.following: int | None = None
        # Lines since the last event that could not be read.
        self.unread = 0
        self._stray = -1

    def damage(self, why: str) -> Damage:
        return Damage(segment=self.name, line=self.number, offset=self.offset, why=why)

    def is_next(self, event: Event) -> bool:
        return event.seq == self.following and event.segment == self.name

    def misplaced(self, event: Event, report: Report) -> bool:
        """Say what is wrong with an event that is not the next one; False: nothing is."""
        stray = event.segment != self.name
        if stray:
            if self._stray != self.number - 1:  # a whole spliced stretch is said once
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


def after_gap(event: Event) -> int:
    """The seq after a gap: a repaired one stands for all the events that were lost there."""
    until = event.data.get("until") if isinstance(event.data, dict) else None
    return max(event.seq, until if type(until) is int else 0) + 1


def read_segment(
    source: Iterable[Batch], strand: Strand, decode: Decode, report: Report
) -> Iterator[Row]:
    """The events of one segment."""
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
    """The events of a file that holds all segments. A line that cannot be read belongs to none of
    them: it is counted as a row of the file.
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

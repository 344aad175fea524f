"""The chain of checksums through one segment, and the consistency of its lines. Knows every way in which a line
can be wrong; does not know files or repairs.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

from playhead.events import GAP, SEGMENT_END, SEGMENT_START, Damage, Event
from playhead.tape.format import Decode, NotAnEvent, open_line
from playhead.tape.manifest import SegmentSummary
from playhead.tape.reading.segment_rows import Batch, Report, Strand, skip, torn


class Chain:
    """Checks a segment line by line; `close` reports the damage that only its end shows."""

    def __init__(
        self, name: str, decode: Decode, report: Report, *, claim: SegmentSummary | None = None
    ) -> None:
        self.name = name
        self.events = 0
        self.bytes = 0
        self.run = ""
        # Whether the segment says that it was closed.
        self.ended = False
        # How many events are missing at its end, if that is known.
        self.cut = 0
        self.damaged = False
        # None: the previous line does not give the checksum that this line continues.
        self.crc: int | None = 0
        self._strand = Strand(name)
        self._decode = decode
        self._on_damage = report
        self._claim = claim
        self._claim_met = False
        self._promised: int | None = None
        self._counted = 0
        # A repaired segment states its losses itself; the counts at its end are from before the repair.
        self._repaired = False

    @property
    def next_seq(self) -> int:
        return self._strand.following or 0

    def line(self, raw: bytes, *, is_torn: bool = False) -> Event | None:
        """Check the next line, given without its newline. Return its event, if it holds one."""
        try:
            event = self._decode(raw)
        except NotAnEvent as error:
            strand = self._strand
            strand.number += 1
            self._report(strand.damage(torn(raw) if is_torn else str(error)))
            self.crc = _claimed(raw)
            strand.failed(len(raw))
            self.bytes = strand.offset
            return None
        self.event(event, raw, is_torn=is_torn)
        return event

    def event(self, event: Event, raw: bytes, *, is_torn: bool = False) -> None:
        """Check the next line, which has been decoded already."""
        strand = self._strand
        strand.number += 1
        in_place = strand.is_next(event) or not strand.misplaced(event, self._report)
        self._check_sum(raw, in_place=in_place)
        if is_torn:
            self._report(strand.damage("the newline at its end is missing"))
        self.events += 1
        strand.passed(event, len(raw))
        self.bytes = strand.offset - (1 if is_torn else 0)
        self._note(event)

    def skip(self, batch: Batch) -> None:
        """Skip a line that was too long to be kept."""
        skip(self._strand, batch, self._report)
        self.crc = None
        self.bytes = self._strand.offset

    def close(self) -> None:
        """Check the end of the segment, after the last line."""
        self._strand.number += 1
        claim = self._claim
        if (
            claim is not None
            and not self._claim_met
            and not self.ended
            and self.bytes < claim.bytes
        ):
            self.cut = max(claim.events - self.events, 1)
            self._say(
                f"the end is cut off: the manifest counts {claim.events} events in "
                f"{claim.bytes} bytes, but the file has {self.events} in {self.bytes}"
            )
        if self.damaged:
            return  # differing sums are expected then
        if self._promised not in (None, self._counted) and not self._repaired:
            self._say(f"segment.end counts {self._promised} events; the file has {self._counted}")
        elif claim is not None and not self._claim_met:
            self._say(
                f"the manifest names {claim.events} events, {claim.bytes} bytes, checksum "
                f"{claim.crc[:20]}; the file has {self.events}, {self.bytes}, {self.crc or 0:08x}"
            )

    def _check_sum(self, raw: bytes, *, in_place: bool) -> None:
        """Check the checksum of a line. It is compared as text: a changed letter in the checksum itself is a change."""
        try:
            body, claimed = open_line(raw)
        except NotAnEvent as error:
            self._say(str(error))
            self.crc = None
            return
        if in_place and self.crc is not None:
            actual = crc32(body, self.crc)
            if raw[-10:-2] != b"%08x" % actual:
                says = raw[-10:-2].decode("ascii", "replace")
                self._say(
                    f"this line, or the one before, was edited: its checksum is {actual:08x}, not {says}"
                )
        # If only this line was edited, the next one still continues from the checksum that this one states.
        self.crc = claimed

    def _note(self, event: Event) -> None:
        data: Any = event.data if event.ours and isinstance(event.data, dict) else {}
        if event.kind == SEGMENT_START and isinstance(data.get("run"), str) and not self.run:
            self.run = data["run"]
        elif event.kind == SEGMENT_END and type(data.get("events")) is int:
            self.ended = True
            self._promised = data["events"]
            # A signal handler may record while segment.end is written: that event comes after it.
            self._counted = self.events
        elif event.kind == GAP and "repaired" in data:
            self._repaired = True
        claim = self._claim
        # At the byte that the manifest names, all its claims must hold; later bytes were written by a process
        # that outlived the run.
        if claim is not None and self.bytes == claim.bytes and self.crc is not None:
            # The recorder of a resumed run continues the count of the run before: either number is valid.
            counted = claim.events in (self.events, event.seq + 1)
            self._claim_met = counted and claim.crc == f"{self.crc:08x}"

    def _say(self, why: str) -> None:
        self._report(self._strand.damage(why))

    def _report(self, damage: Damage) -> None:
        self.damaged = True
        self._on_damage(damage)


def _claimed(raw: bytes) -> int | None:
    try:
        return open_line(raw)[1]
    except NotAnEvent:
        return None

"""Rewrite the events of a damaged segment. Knows lines, seqs and the chain; does not know the run.

Lines keep their bytes except for the checksum; the chain is recomputed from the first damage on. Events that
are missing between two others are stated by a `gap` in their place, all others by one at the end.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from playhead.events import GAP, SEGMENT_START, Damage, Event
from playhead.host.private_files import file_of
from playhead.tape.format import Decode, NotAnEvent, close_line, open_line
from playhead.tape.reading.chain import Chain
from playhead.tape.reading.segment_rows import Damages, after_gap, batches, blocks

_MOST_TOLD = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePlace:
    """The place of an event's line, and whether it is unaltered."""

    offset: int
    length: int
    sound: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The readable part of a segment."""

    # By seq.
    places: dict[int, LinePlace]
    # Lines that hold no event of this segment.
    unread: int
    ended: bool
    # The run that the segment names; empty if its first line is not trustworthy.
    run: str
    damages: list[Damage]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """The result of rewriting a segment."""

    kept: int
    lost: int


def scan(path: Path, name: str, decode: Decode) -> Found:
    """Find every event that can be kept. Of two lines with one seq, the sound one is the event."""
    damages = Damages()
    chain = Chain(name, decode, damages.report)
    places: dict[int, LinePlace] = {}
    unread = offset = 0
    for batch in batches(blocks(path)):
        if batch.skipped:
            chain.skip(batch)
            unread += 1
            offset += batch.skipped + 1
        for raw in batch.lines:
            before = damages.total
            event = chain.line(raw, is_torn=batch.torn)
            place = LinePlace(offset=offset, length=len(raw), sound=before == damages.total)
            offset += len(raw) + 1
            if event is None or event.segment != name or event.seq < 0:
                unread += 1
            elif event.seq not in places or (place.sound and not places[event.seq].sound):
                places[event.seq] = place
    chain.close()
    unread += _drop_absurd(places, unread)
    believed = bool(places) and places[min(places)].sound
    return Found(
        places=places,
        unread=unread,
        ended=chain.ended,
        run=chain.run if believed else "",
        damages=list(damages),
    )


def _drop_absurd(places: dict[int, LinePlace], unread: int) -> int:
    """Drop a seq far beyond all others in the middle of the file: it was altered.

    A seq near the others is kept, because lines may be moved or lost as well.
    """
    highest = max((seq for seq, place in places.items() if place.sound), default=None)
    if highest is None:
        return 0
    end = places[highest].offset
    while highest + 1 in places:
        highest += 1
    within = highest + len(places) + unread
    absurd = [seq for seq, place in places.items() if seq > within and place.offset < end]
    for seq in absurd:
        del places[seq]
    return len(absurd)


def rewrite(
    source: Path,
    target: Path,
    found: Found,
    decode: Decode,
    *,
    name: str,
    start: dict[str, Any],
    cut: int,
    when: str,
) -> Rewritten:
    """Rewrite `source` into `target`. `start`: the data of a new first line if the segment's own is lost; `cut`: how
    many events are missing at the end, by the manifest.
    """
    seqs = sorted(found.places)
    fd = os.open(target, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC)
    with file_of(source) as lines, open(fd, "wb") as file:

        def raw(seq: int) -> bytes:
            lines.seek(found.places[seq].offset)
            return lines.read(found.places[seq].length)

        first = decode(raw(seqs[0]))
        out = Rewriter(file, ids=_ids(name, first), decode=decode, when=when)
        if _is_start(first, start, sound=found.places[seqs[0]].sound):
            out.begin(seqs[0])
        else:
            # The first line of a segment has seq 0, except for a resumed run, which continues the count.
            seq = max(seqs[0] - 1, 0) if start.get("generation") else 0
            out.start(seq, first, start)
            seqs = [one for one in seqs if one > seq]
        for seq in seqs:
            out.line(raw(seq))
        lost = 0 if found.ended else cut or max(0, found.unread - out.lost)
        if lost or not out.gaps or any(not one.sound for one in found.places.values()):
            out.gap(lost, _listed(found.damages) or f"{lost} events are cut off at the end")
    return Rewritten(kept=out.kept, lost=out.lost)


def _is_start(event: Event, start: dict[str, Any], *, sound: bool) -> bool:
    """Return whether this is the first line of the segment, and is trustworthy."""
    if event.kind != SEGMENT_START or not event.ours:
        return False
    data = event.data if isinstance(event.data, dict) else {}
    return sound or all(data.get(name) == start[name] for name in ("run", "format"))


class Rewriter:
    """Writes one segment, line by line."""

    def __init__(self, file: BinaryIO, *, ids: dict[str, Any], decode: Decode, when: str) -> None:
        self._file = file
        self._ids = ids
        self._decode = decode
        self._when = when
        self._crc = 0
        self._following = 0
        self._clock = (0, 0)
        self.kept = 0
        self.lost = 0
        self.gaps = 0

    def begin(self, seq: int) -> None:
        self._following = seq

    def start(self, seq: int, first: Event, data: dict[str, Any]) -> None:
        """Write a first line in place of the lost one."""
        self._following = seq
        self._clock = (first.wall, first.mono)
        self._make(SEGMENT_START, {**data, "repaired": self._when})
        self.lost += 1

    def line(self, raw: bytes) -> None:
        event = self._decode(raw)
        missing = event.seq - self._following
        if missing > 0:
            events = "an event" if missing == 1 else f"{missing} events"
            self.gap(missing, f"{events} could not be read here", until=event.seq - 1)
        self._write(_body(raw))
        self._clock = (event.wall, event.mono)
        self._following = after_gap(event) if event.kind == GAP else event.seq + 1
        self.kept += 1

    def gap(self, lost: int, why: str, *, until: int | None = None) -> None:
        data: dict[str, Any] = {"lost": lost, "why": why, "repaired": self._when}
        self._make(GAP, data if until is None else {**data, "until": until})
        self.lost += lost
        self.gaps += 1

    def _make(self, kind: str, data: dict[str, Any]) -> None:
        wall, mono = self._clock
        members = {"seq": self._following, "kind": kind, "wall": wall, "mono": mono, **self._ids}
        body = json.dumps({**members, "data": data}, ensure_ascii=False, separators=(",", ":"))
        self._write(body.encode()[:-1])
        self._following += 1

    def _write(self, body: bytes) -> None:
        line, self._crc = close_line(body, self._crc)
        self._file.write(line)


def _ids(name: str, event: Event) -> dict[str, Any]:
    return {"pid": event.pid} if name == str(event.pid) else {"pid": event.pid, "seg": name}


def _listed(damages: list[Damage]) -> str:
    listed = "; ".join(str(damage) for damage in damages[:_MOST_TOLD])
    more = len(damages) - _MOST_TOLD
    return f"{listed}; and {more} more" if more > 0 else listed


def _body(raw: bytes) -> bytes:
    """Return the part of the line that its checksum covers: an object without its end."""
    try:
        return open_line(raw)[0]
    except NotAnEvent:
        return raw.rstrip()[:-1].rstrip()

"""Find one event by its name, without reading the events before it. Knows where lines begin in files and frames;
does not know the order of events.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from pathlib import Path
from typing import TYPE_CHECKING

from playhead.errors import StoreError, TapeDamaged, UsageError
from playhead.events import Damage, Event, Ref
from playhead.host.later import Later
from playhead.host.private_files import file_of
from playhead.tape.format import LONGEST_LINE, Decode, NotAnEvent, decoder_for
from playhead.tape.reading.segment_rows import batches, blocks
from playhead.tape.reading.segments import Segment, plain_decoder

if TYPE_CHECKING:
    from playhead.tape.sealed import sealed_reader, zstd
    from playhead.tape.sealed.seal_index import SealIndex
else:
    sealed_reader = Later("playhead.tape.sealed.sealed_reader")  # a plain tape is read without zstd
    zstd = Later("playhead.tape.sealed.zstd")

# How our own writer begins a line. Any other order of members is found by decoding the line.
_SEQ = re.compile(rb'\{"seq":(0|[1-9]\d{0,17})[,}]')


class Seeker:
    """Remembers where events are: a segment is scanned once, and again only where it has grown."""

    def __init__(self) -> None:
        self._offsets: dict[Path, Offsets] = {}
        self._frame: tuple[int, list[bytes]] = (-1, [])

    def event(self, ref: Ref, segments: list[Segment], index: SealIndex | None) -> Event:
        name, seq = parse_ref(ref)
        for segment in segments if name is not None else roots(segments):
            if name is None or segment.name == name:
                found = self._find(segment, seq, index)
                if found is not None:
                    return found
        known = ", ".join(segment.name for segment in segments[:5])
        raise UsageError(
            f"There is no event {ref!r} on this tape; its segments are {known or 'none'}. "
            "An event is named SEGMENT:SEQ, or SEQ alone in the run's own process."
        )

    def _find(self, segment: Segment, seq: int, index: SealIndex | None) -> Event | None:
        if segment.sealed:
            return self._in_frames(segment, seq, index, decoder_for(segment.format))
        decode = plain_decoder(segment)
        offsets = self._offsets.setdefault(segment.path, Offsets(segment.path, decode))
        offset = offsets.find(seq)
        if offset is None:
            return None
        try:
            return decode(_line_at(segment.path, offset))
        except NotAnEvent as error:
            damage = Damage(segment=segment.name, line=0, offset=offset, why=str(error))
            raise TapeDamaged(
                f"Event {segment.name}:{seq} is damaged: {error}.", [damage]
            ) from None

    def _in_frames(
        self, segment: Segment, seq: int, index: SealIndex | None, decode: Decode
    ) -> Event | None:
        for frame in index.frames if index else []:
            low, high = frame.seqs.get(segment.name, (0, -1))
            if not low <= seq <= high:
                continue
            if self._frame[0] != frame.offset:
                try:
                    self._frame = (
                        frame.offset,
                        sealed_reader.open_frame(segment.path, frame).split(b"\n"),
                    )
                except zstd.FrameDamaged as error:
                    message = f"Event {segment.name}:{seq} is in a damaged frame: {error}."
                    why = str(error)
                    at = Damage(segment=segment.path.name, line=0, offset=frame.offset, why=why)
                    raise TapeDamaged(message, [at]) from None
            for line in self._frame[1]:
                if seq_of(line, decode) == seq:
                    event = _decoded(line, decode)
                    if event is not None and event.segment == segment.name:
                        return event
        return None


class Offsets:
    """Seq → the byte where its line begins. Sixteen bytes an event."""

    def __init__(self, path: Path, decode: Decode) -> None:
        self._path = path
        self._decode = decode
        self._seqs = array("q")
        self._starts = array("q")
        # Moved, duplicated and unexpected lines, which a damaged tape may have.
        self._odd: dict[int, int] = {}
        self._end = 0

    def find(self, seq: int) -> int | None:
        found = self._known(seq)
        if found is None:
            self._scan()
            found = self._known(seq)
        return found

    def _known(self, seq: int) -> int | None:
        at = bisect_left(self._seqs, seq)
        if at < len(self._seqs) and self._seqs[at] == seq:
            return self._starts[at]
        return self._odd.get(seq)

    def _scan(self) -> None:
        at = self._end
        for batch in batches(blocks(self._path, start=at)):
            at += batch.skipped + 1 if batch.skipped else 0
            for line in batch.lines:
                seq = seq_of(line, self._decode)
                if seq is not None:
                    self._add(seq, at)
                at += len(line) + 1
            if not batch.torn:
                self._end = at

    def _add(self, seq: int, at: int) -> None:
        if 0 <= seq < 1 << 62 and (not self._seqs or seq > self._seqs[-1]):
            self._seqs.append(seq)
            self._starts.append(at)
        elif self._known(seq) is None:
            self._odd[seq] = at


def parse_ref(ref: Ref) -> tuple[str | None, int]:
    """Parse the name of an event: `4711:17` → segment 4711, seq 17; 17 alone → no segment, seq 17."""
    if isinstance(ref, int):
        return None, ref
    name, _, seq = ref.rpartition(":")
    try:
        return name or None, int(seq)
    except ValueError:
        raise UsageError(
            f"{ref[:80]!r} names no event: expected SEGMENT:SEQ, such as 4711:17, or a SEQ alone."
        ) from None


def roots(segments: list[Segment]) -> list[Segment]:
    """The segments of the run's own process: the first, and one more for each resume."""
    first: dict[int, Segment] = {}
    for segment in segments:
        first.setdefault(segment.generation, segment)
    return list(first.values())


def seq_of(line: bytes, decode: Decode) -> int | None:
    hit = _SEQ.match(line)
    if hit is not None:
        return int(hit.group(1))
    event = _decoded(line, decode)
    return None if event is None else event.seq


def _decoded(line: bytes, decode: Decode) -> Event | None:
    try:
        return decode(line)
    except NotAnEvent:
        return None


def _line_at(path: Path, offset: int) -> bytes:
    try:
        with file_of(path) as file:
            file.seek(offset)
            return file.readline(LONGEST_LINE + 1).rstrip(b"\n")
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({error.strerror or error}).") from error

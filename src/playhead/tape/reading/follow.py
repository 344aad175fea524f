"""Follow a tape while it is being written. Knows when to look again and when the run has ended; does not know
what the events mean.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from playhead import clock
from playhead.errors import StoreError, TapeDamaged
from playhead.events import RUN_END, RUN_START, Event
from playhead.tape.format import decoder_for
from playhead.tape.manifest import read_manifest, status_of
from playhead.tape.reader import Tape
from playhead.tape.reading.merged_rows import Source, keyed, merge, sealed_rows
from playhead.tape.reading.segment_rows import Batch, Row, Strand, batches, blocks, read_segment
from playhead.tape.reading.segments import Segment, is_alive

_SHORTEST_WAIT = 0.010
_LONGEST_WAIT = 0.100


def follow(tape: Tape, *, wait: Callable[[float], None] = clock.sleep) -> Iterator[Event]:
    """Yield all events so far, then each as it is appended, including those of new processes. Ends after
    `run.end`, or when the process has exited and everything it wrote has been read.

    Events that are there at the same time come in order; later events come later.
    """
    return (row[0] for row in follow_rows(tape, wait=wait))


def follow_rows(tape: Tape, *, wait: Callable[[float], None] = clock.sleep) -> Iterator[Row]:
    """Yield the same events, each with its line."""
    follower = Follower(tape)
    pause = _SHORTEST_WAIT
    while True:
        idle = True
        for row in follower.look():
            idle = False
            yield row
        if follower.is_over:
            return
        if idle:
            wait(pause)
        pause = min(2 * pause, _LONGEST_WAIT) if idle else _SHORTEST_WAIT


class Follower:
    """Follows a tape step by step, for callers with other work between two reads."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._strands: dict[str, Strand] = {}
        # Segments that were rewritten because their folder had been deleted.
        self._replaced: set[str] = set()
        # The last seq that was yielded of each segment: `record` seals a run when it ends, and the remaining
        # events are then in another file.
        self._positions: dict[str, int] = {}
        self._done: frozenset[str] = frozenset()
        self._ended = False
        self.is_over = False

    def look(self) -> Iterator[Row]:
        """Yield the rows since the last call. After the last row, `is_over` is True."""
        # Checked before reading, so that everything written before the end is certainly read.
        over = self._ended or not self._is_running()
        idle = True
        for row in self._news(last=False):
            idle = False
            yield row
        if over and idle:
            yield from self._news(last=True)
            self.is_over = True

    def _news(self, *, last: bool) -> Iterator[Row]:
        """Yield the rows that were not yielded yet. `last`: an unfinished line will not be completed."""
        try:
            for row in merge(self._sources(last=last)):
                event = row[0]
                if event.kind in (RUN_START, RUN_END) and event.ours:
                    self._ended = event.kind == RUN_END
                self._positions[event.segment] = max(
                    event.seq, self._positions.get(event.segment, -1)
                )
                yield row
        except StoreError:
            return  # the run is being sealed, and a segment was removed: read again

    def _sources(self, *, last: bool) -> list[Source[Row]]:
        segments = self._tape.segments()
        plain = [segment for segment in segments if not segment.sealed]
        sealed = [one for one in segments if one.sealed and one.name not in self._done]
        sources = [keyed(self._rows_of(one, last=last), [one]) for one in plain]
        if sealed:
            but = frozenset(one.name for one in plain) | self._done
            sources.append(keyed(lambda: self._sealed(sealed, but), sealed))
        return sources

    def _sealed(self, sealed: list[Segment], but: frozenset[str]) -> Iterator[Row]:
        yield from self._untold(sealed_rows(sealed, but, self._report))
        self._done |= {one.name for one in sealed}

    def _rows_of(self, segment: Segment, *, last: bool) -> Callable[[], Iterator[Row]]:
        strand = self._strands.setdefault(segment.name, Strand(segment.name))
        try:
            size = os.stat(segment.path).st_size
        except OSError as error:
            raise StoreError(f"{segment.path} was removed ({error.strerror}).") from error
        if size < strand.offset:
            strand = self._strands[segment.name] = Strand(segment.name)
            self._replaced.add(segment.name)

        def rows() -> Iterator[Row]:
            source = batches(blocks(segment.path, start=strand.offset, stop=size))
            lines = source if last else _finished(source)
            found = read_segment(lines, strand, decoder_for(segment.format), self._report)
            return self._untold(found) if segment.name in self._replaced else found

        return rows

    def _untold(self, rows: Iterator[Row]) -> Iterator[Row]:
        for row in rows:
            if row[0].seq > self._positions.get(row[0].segment, -1):
                yield row

    def _is_running(self) -> bool:
        try:
            return status_of(read_manifest(self._tape.run)) == "running"
        except TapeDamaged:
            return any(is_alive(segment) for segment in self._tape.segments())

    @property
    def _report(self) -> Callable[..., None]:
        return self._tape.damage.report


def _finished(source: Iterator[Batch]) -> Iterator[Batch]:
    """Return the batches without an incomplete last line, which is still being written."""
    return (batch for batch in source if not batch.torn)

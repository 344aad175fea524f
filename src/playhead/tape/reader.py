"""Read a tape: events in order, one event by its name, and the damage. Does not know what the events mean.

Memory stays constant however long the tape is. Only a format newer than ours makes reading fail: a part that
cannot be read becomes a `Damage`, and reading continues after it.
"""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.errors import TapeDamaged
from playhead.events import RUN_START, Event, Ref
from playhead.host.later import Later
from playhead.tape.blobs import pull, unspill
from playhead.tape.layout import SEALED_FILE as SEALED
from playhead.tape.manifest import FILE as MANIFEST
from playhead.tape.manifest import Manifest, read_manifest
from playhead.tape.reading.merged_rows import tape_rows
from playhead.tape.reading.segment_rows import Damages, Row
from playhead.tape.reading.segments import Segment, Segments

if TYPE_CHECKING:
    from playhead.tape.care import rebuild_manifest
    from playhead.tape.reading import partial_run, seek
    from playhead.tape.reading.seek import Seeker
else:
    seek = Later("playhead.tape.reading.seek")  # most readers take the events in order
    rebuild_manifest = Later("playhead.tape.care.rebuild_manifest")  # for damaged tapes
    partial_run = Later("playhead.tape.reading.partial_run")  # for runs in shared stores


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause garbage collection while a tape is loaded. A large tape makes a million objects that all stay, and
    collecting among them again and again would double the time.

    At the end all live objects are moved to the oldest generation; otherwise the collector would traverse them
    at once, because they are new. If the program has frozen objects, they stay frozen and nothing is moved.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line as it stands on the tape, without its newline; unknown kinds and members included."""

    segment: str
    # Its number in its segment, from 1.
    number: int
    raw: bytes


class Tape:
    """The recording of one run. Opening costs nothing; files are read on demand.

    `damage` is filled while reading. For a run that is still in progress, each call sees the events so far
    (see `follow` for later ones).
    """

    def __init__(self, run: Path) -> None:
        self.run = Path(run)
        self.damage = Damages()
        # Secrets by placeholder, for the answers of a replay: from the vault of the run.
        self.secrets: Mapping[bytes, bytes] = {}
        self._segments = Segments(self.run, self.damage.report)

    @cached_property
    def _seeker(self) -> Seeker:
        return seek.Seeker()

    @cached_property
    def manifest(self) -> Manifest:
        """The run's manifest; if that is missing or damaged, one rebuilt from the tape."""
        try:
            return read_manifest(self.run)
        except TapeDamaged:
            return rebuild_manifest.manifest_from(self.rows(), folder=self.run.name)

    @cached_property
    def is_partial(self) -> bool:
        """Return whether a part of this run is not on this disk; see `partial_run`."""
        return partial_run.is_partial(self.run)

    def first_events(self, most: int) -> int:
        """Return the number of events for a first view: fewer than `most` if they would have to be fetched."""
        index = self._segments.index() if self.is_partial else None
        return most if index is None else partial_run.first_events(index, most)

    def segments(self) -> list[Segment]:
        """Return the segments in the order in which they began: the first is the run's own process."""
        segments = self._segments.now()
        if not segments and not (self.run / MANIFEST).exists():
            raise TapeDamaged(
                f"{self.run} holds no tape: expected tape-PID.jsonl or {SEALED}, and {MANIFEST}."
            )
        return segments

    def events(self) -> Iterator[Event]:
        """Yield all events by (generation, monotonic ns, pid, seq)."""
        return (row[0] for row in self.rows())

    def lines(self) -> Iterator[Line]:
        """Yield the lines of all events in the same order, byte for byte."""
        return (
            Line(segment=event.segment, number=number, raw=raw)
            for event, number, raw in self.rows()
        )

    def rows(self) -> Iterator[Row]:
        """Yield the event, the number of its line, and the line."""
        return tape_rows(self.segments(), self.damage.report)

    def start_facts(self) -> Mapping[str, Any]:
        """Return the data of the run's first event: its command, environment, input and output."""
        for event in self.events():
            if event.kind == RUN_START and event.ours:
                data = self.whole(event).data
                return data if isinstance(data, dict) else {}
        return {}

    def event(self, ref: Ref) -> Event:
        """Return one event by "SEGMENT:SEQ", or by its seq in the run's own process.

        UsageError: there is no event of that name. TapeDamaged: it exists, but cannot be read.
        """
        return self._seeker.event(ref, self.segments(), self._segments.index())

    def whole(self, event: Event) -> Event:
        """Return `event` with its blobs back in their places. TapeDamaged: one is missing or altered."""
        return dataclasses.replace(event, data=unspill(self.run, event.data))

    def blob(self, digest: str) -> bytes:
        return pull(self.run, digest)

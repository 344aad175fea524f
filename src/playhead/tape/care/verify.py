"""Verify a tape: check every line, blob, frame and count, and list the damage with its place.

Also refuses to work on a run that is still being written.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead import clock
from playhead.errors import TapeDamaged, UsageError
from playhead.events import FILES, RUN_END, SEGMENT_END, Damage, Event
from playhead.host.later import Later
from playhead.tape.care.blob_check import BlobCheck
from playhead.tape.format import decoder_for
from playhead.tape.layout import SEALED_FILE as SEALED
from playhead.tape.manifest import FILE as MANIFEST
from playhead.tape.manifest import FILE_CHECKSUM, Manifest, SegmentSummary, read_manifest, status_of
from playhead.tape.reader import Tape
from playhead.tape.reading.chain import Chain
from playhead.tape.reading.file_losses import FileLosses
from playhead.tape.reading.seek import roots
from playhead.tape.reading.segment_rows import Damages, batches, blocks
from playhead.tape.reading.segments import Segment, Segments, is_alive, plain_decoder

if TYPE_CHECKING:
    from playhead.tape.sealed import sealed_reader
else:
    sealed_reader = Later(
        "playhead.tape.sealed.sealed_reader"
    )  # a plain tape is checked without zstd


_CHANGED = (
    "it was changed after Playhead wrote it: its checksum is wrong. "
    "If the change is yours, delete `sha256` from line 1"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentCheck:
    """The result of checking one segment."""

    name: str
    run: str
    events: int
    bytes: int
    crc: str
    # Whether it was closed properly, by a process that was not killed.
    ended: bool
    # How many events are missing at its end, if the manifest says so.
    cut: int
    damaged: bool
    sealed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The result of a verification. `ok`: nothing is missing or changed. All findings are in `damages`."""

    ok: bool
    # The run that the segments belong to.
    run: str
    segments: list[SegmentCheck]
    damages: list[Damage]
    # The number of damages beyond those that are listed.
    more: int = 0
    blobs: int = 0
    blobs_missing: list[str] = field(default_factory=list)
    blobs_altered: list[str] = field(default_factory=list)
    # Events that the recorder could not write, by its own count: the tape is sound, but not complete.
    lost: int = 0
    # Changes of files that are not on the tape.
    lost_file_changes: int = 0
    # For a single-file tape: whether its content fits its checksum (`right`, `wrong`), or `none` if it has none.
    file_checksum: str | None = None

    @property
    def events(self) -> int:
        return sum(segment.events for segment in self.segments)

    @property
    def cut(self) -> int:
        """Return how many events are missing at the ends of segments."""
        return sum(segment.cut for segment in self.segments)


def verify(run: Path, tape: Tape | None = None) -> Verification:
    """Check the whole run. Raises TapeTooNew, and TapeDamaged if there is no tape at all.

    A caller that also reads the run passes its `tape`: then the segments are opened once.
    """
    check = _Check(Path(run), tape)
    check.segments()
    check.runs()
    check.counts()
    check.file()
    return check.result()


class _Check:
    def __init__(self, run: Path, tape: Tape | None) -> None:
        self._run = run
        self._tape = tape
        self._damages = Damages()
        self._blobs = BlobCheck(run)
        self._chains: list[tuple[Segment, Chain]] = []
        self._ending: Any = None
        self._lost = 0
        self._file_losses = FileLosses()
        self._named = ""
        self._manifest: Manifest | None = None
        try:
            self._manifest = read_manifest(run)
        except TapeDamaged as error:
            self._say(MANIFEST, str(error).partition(" `playhead")[0])

    def segments(self) -> None:
        if self._tape is None:
            found = Segments(self._run, self._damages.report).now()
        else:
            found = self._tape.segments()
            for damage in self._tape.damage:
                self._damages.report(damage)
        if not found and self._manifest is None:
            raise TapeDamaged(f"{self._run} holds no tape: expected tape-PID.jsonl or {SEALED}.")
        claims = {one.name: one for one in self._manifest.segments} if self._manifest else {}
        sealed = {}
        for segment in found:
            chain = self._chain(segment, claims.get(segment.name))
            self._chains.append((segment, chain))
            if segment.sealed:
                sealed[segment.name] = chain
            else:
                self._read(segment, chain)
        if (self._run / SEALED).is_file():
            plain = frozenset(segment.name for segment in found if not segment.sealed)
            sealed_reader.check_sealed(self._run, sealed, plain, self._look, self._damages.report)
        for name in claims.keys() - {segment.name for segment in found}:
            self._say(name, "the segment is missing, but the manifest names it")

    def runs(self) -> None:
        """Check that all segments and the manifest name the same run."""
        self._named = self._manifest.run if self._manifest is not None else ""
        named = Counter(chain.run for _, chain in self._chains if chain.run)
        if not named:
            return
        ours = named.most_common(1)[0][0]
        if self._manifest is not None and self._manifest.run in named:
            ours = self._manifest.run
        elif self._manifest is not None:
            self._say(MANIFEST, f"it names run {self._manifest.run[:80]!r}, the tape {ours[:80]!r}")
        self._named = ours
        for segment, chain in self._chains:
            if chain.run not in ("", ours):
                chain.damaged = True
                self._say(segment.name, f"it belongs to run {chain.run[:80]!r}", line=1)

    def counts(self) -> None:
        """Check the manifest's counts of the whole run; those of a segment were checked with the segment."""
        manifest = self._manifest
        if manifest is None:
            return
        total = sum(one.events for one in manifest.segments)
        here = sum(chain.events for _, chain in self._chains)
        # For a resumed run these may be seqs, which continue those of the earlier part.
        seqs = max((chain.next_seq for _, chain in self._chains), default=0)
        if manifest.segments and manifest.events not in (total, here, seqs):
            self._say(
                MANIFEST, f"it counts {manifest.events} events, but its segments have {total}"
            )
        if self._ending is None or manifest.status not in ("ok", "failed"):
            return
        for name in ("status", "exit_code"):
            said, taped = getattr(manifest, name), self._ending.get(name)
            if taped is not None and said != taped:
                self._say(MANIFEST, f"its {name} is {said!r}; run.end says {str(taped)[:80]!r}")

    def result(self) -> Verification:
        return Verification(
            ok=not self._damages,
            run=self._named,
            segments=[_found(segment, chain) for segment, chain in self._chains],
            damages=list(self._damages),
            more=self._damages.more,
            blobs=self._blobs.count,
            blobs_missing=self._blobs.in_state("missing"),
            blobs_altered=self._blobs.in_state("altered"),
            lost=max(self._lost, self._manifest.lost if self._manifest else 0),
            lost_file_changes=self._file_losses.count,
            file_checksum=self._file_checksum(),
        )

    def file(self) -> None:
        """Check the file that the run was unpacked from."""
        if self._file_checksum() == "wrong":
            self._say("file", _CHANGED)

    def _file_checksum(self) -> str | None:
        found = self._manifest.extra.get(FILE_CHECKSUM) if self._manifest else None
        return found if isinstance(found, str) else None

    def _chain(self, segment: Segment, claim: SegmentSummary | None) -> Chain:
        decode = decoder_for(segment.format) if segment.sealed else plain_decoder(segment)
        return Chain(segment.name, decode, self._damages.report, claim=claim)

    def _read(self, segment: Segment, chain: Chain) -> None:
        for batch in batches(blocks(segment.path)):
            if batch.skipped:
                chain.skip(batch)
            for raw in batch.lines:
                event = chain.line(raw, is_torn=batch.torn)
                if event is not None:
                    self._look(event, raw)
        chain.close()

    def _look(self, event: Event, raw: bytes) -> None:
        for digest, state in self._blobs.look(event, raw):
            self._say(event.segment, f"blob {digest[:80]} of seq {event.seq} is {state}")
        if event.kind == SEGMENT_END and event.ours and isinstance(event.data, dict):
            lost = event.data.get("lost")
            self._lost += lost if type(lost) is int and lost > 0 else 0
        if event.kind == FILES and event.ours:
            self._file_losses.add(event)
        if event.kind == RUN_END and event.ours and isinstance(event.data, dict):
            self._ending = event.data

    def _say(self, place: str, why: str, *, line: int = 0) -> None:
        self._damages.report(Damage(segment=place, line=line, offset=0, why=why))


def _found(segment: Segment, chain: Chain) -> SegmentCheck:
    return SegmentCheck(
        name=segment.name,
        run=chain.run,
        events=chain.events,
        bytes=chain.bytes,
        crc="" if chain.crc is None else f"{chain.crc:08x}",
        ended=chain.ended,
        cut=chain.cut,
        damaged=chain.damaged,
        sealed=segment.sealed,
    )


def refuse_live(tape: Tape, found: Verification, *, force: bool) -> None:
    """Raise UsageError if a process writes, or may write, to this tape. `force`: the user knows that a run of another
    host has ended.
    """
    name = tape.manifest.run
    ended = {check.name for check in found.segments if check.ended}
    segments = tape.segments()
    for segment in segments:
        if segment.name not in ended and is_alive(segment):
            raise UsageError(
                f"Process {segment.pid} of run {name} is still writing. Wait for its end."
            )
    if status_of(tape.manifest) != "running":
        return
    if tape.manifest.host == clock.host():
        raise UsageError(f"Run {name} is still in progress. Wait until it has ended.")
    own = roots(segments)
    if force or not own or own[-1].name in ended:
        return
    raise UsageError(
        f"Run {name} was recorded on {tape.manifest.host or 'another host'}, so Playhead cannot "
        "tell whether it has ended. If it has, add --force."
    )

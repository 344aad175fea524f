"""Repair a damaged tape as far as possible. Knows what to move aside and what to rewrite; never deletes.

A damaged original becomes `NAME.damaged.TIMESTAMP` beside the new file.
"""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from playhead import clock
from playhead.errors import TapeDamaged
from playhead.events import Damage
from playhead.tape.blobs import blob_path
from playhead.tape.care.rebuild_manifest import manifest_from
from playhead.tape.care.rewrite_segment import rewrite, scan
from playhead.tape.care.verify import Verification, refuse_live, verify
from playhead.tape.format import (
    SEGMENT_PREFIX,
    SEGMENT_SUFFIX,
    decoder_for,
    is_segment,
    segment_file,
)
from playhead.tape.manifest import FILE as MANIFEST
from playhead.tape.manifest import read_manifest, write_manifest
from playhead.tape.reader import Tape
from playhead.tape.reading.chain import Chain
from playhead.tape.reading.merged_rows import sealed_rows
from playhead.tape.reading.segment_rows import pass_over
from playhead.tape.reading.segments import NO_FILE, Segment
from playhead.tape.sealed.seal import append, finish, new_part
from playhead.tape.sealed.seal_index import FILE as SEALED
from playhead.tape.sealed.seal_index import INDEX, SealIndex, read_index, write_index
from playhead.tape.sealed.sealed_reader import build_index, check_sealed
from playhead.tape.sealed.sealed_segment import SealedSegment


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """The result of a repair. `changed` is False if there was nothing to do, or nothing could be done."""

    changed: bool
    # Events that are on the tape now, and events that are known to be lost.
    kept: int
    lost: int
    # The originals, under their new names.
    moved: list[Path] = field(default_factory=list)
    # The damage that was found before the repair.
    damages: list[Damage] = field(default_factory=list)
    # Blobs that cannot be restored.
    blobs_lost: list[str] = field(default_factory=list)


def repair(run: Path, at_wall_ns: int | None = None, *, force: bool = False) -> Repair:
    """Repair a tape. Does nothing to a healthy tape.

    UsageError: the run is still in progress (`force`: assume that a run of another host has ended). TapeTooNew: made by
    a newer Playhead.
    """
    run = Path(run)
    before = verify(run)
    refuse_live(Tape(run), before, force=force)
    if before.ok:
        return Repair(changed=False, kept=before.events, lost=0)
    work = _Work(run, before, clock.wall_ns() if at_wall_ns is None else at_wall_ns)
    work.sealed()
    work.segments()
    work.blobs()
    work.manifest()
    return Repair(
        changed=bool(work.moved or work.made),
        kept=verify(run).events,
        lost=work.lost,
        moved=work.moved,
        damages=before.damages,
        blobs_lost=[*before.blobs_missing, *before.blobs_altered],
    )


class _Work:
    """The steps of one repair, and their results."""

    def __init__(self, run: Path, before: Verification, at_wall_ns: int) -> None:
        self._run = run
        self._before = before
        self._at = at_wall_ns
        self.moved: list[Path] = []
        self.made: list[Path] = []
        self.lost = 0

    def sealed(self) -> None:
        """Repair a sealed tape: rebuild the index if only that is wrong, else extract plain segments."""
        segments = Tape(self._run).segments()
        sealed = [one for one in segments if one.sealed]
        wrong = {one.segment for one in self._before.damages} & {SEALED, INDEX}
        if not sealed:
            if wrong:  # left by an interrupted sealing; the segments are all there
                self._aside(SEALED, INDEX)
            return
        plain = frozenset(one.name for one in segments if not one.sealed)
        if SEALED in wrong or _breaks(self._run, sealed, plain):
            self._extract(sealed, plain)
            self._aside(SEALED, INDEX)
        elif INDEX in wrong:
            self._aside(INDEX)
            write_index(self._run, build_index(self._run, pass_over))
            self.made.append(self._run / INDEX)

    def segments(self) -> None:
        for damage in self._before.damages:
            if damage.why == NO_FILE:
                self._aside(f"{SEGMENT_PREFIX}{damage.segment}{SEGMENT_SUFFIX}")
        cuts = {one.name: one.cut for one in self._before.segments}
        for segment in Tape(self._run).segments():
            if not segment.sealed:
                self._segment(segment, cuts.get(segment.name, 0))

    def blobs(self) -> None:
        """Move blobs aside whose content does not match their name."""
        for digest in self._before.blobs_altered:
            path = blob_path(self._run, digest)
            self._aside(str(path.relative_to(self._run)))

    def manifest(self) -> None:
        """Write a new manifest: the counts and the end of the run come from the tape, the rest from the old manifest,
        if any.
        """
        if not self.moved and not self.made and _only_blobs(verify(self._run)):
            return
        made = manifest_from(Tape(self._run).rows(), folder=self._before.run or self._run.name)
        try:
            old = read_manifest(self._run)
        except TapeDamaged:
            old = made
        known = [one.status for one in (made, old) if one.status != "running"]
        new = dataclasses.replace(
            old,
            run=self._before.run or made.run,
            # A run that has stopped without an end on the tape was interrupted.
            status=known[0] if known else "interrupted",
            exit_code=old.exit_code if made.exit_code is None else made.exit_code,
            events=made.events,
            lost=made.lost,
            segments=made.segments,
        )
        self._aside(MANIFEST, copy=True)
        write_manifest(self._run, new)
        self.made.append(self._run / MANIFEST)

    def _segment(self, segment: Segment, cut: int) -> None:
        decode = decoder_for(segment.format)
        found = scan(segment.path, segment.name, decode)
        ours = found.run in ("", self._before.run)
        if ours and not found.damages and not cut:
            return
        if not ours or not found.places:
            self.lost += len(found.places) + found.unread + cut
            self._aside(segment.path.name)
            return
        part = new_part(segment.path)
        made = rewrite(
            segment.path,
            part,
            found,
            decode,
            name=segment.name,
            start=self._start(segment),
            cut=cut,
            when=clock.iso(self._at),
        )
        self.lost += made.lost
        self._aside(segment.path.name, copy=True)
        finish(part)
        self.made.append(segment.path)

    def _start(self, segment: Segment) -> dict[str, Any]:
        """Return the first line for a segment that has lost its own, as far as it can be reconstructed."""
        said: dict[str, Any] = {"format": segment.format, "run": self._before.run}
        try:
            manifest = read_manifest(self._run)
        except TapeDamaged:
            return {**said, "generation": 0, "pid": segment.pid}
        own = segment.pid == manifest.pid
        return {
            **said,
            "generation": manifest.generation if own else 0,
            "level": manifest.level,
            "redacted": manifest.redacted,
            "pid": segment.pid,
            "host": manifest.host,
        }

    def _extract(self, sealed: list[Segment], plain: frozenset[str]) -> None:
        """Write every row of the sealed file that can still be read into plain segments."""
        parts: dict[str, Path] = {}
        rows = sealed_rows(sealed, plain, pass_over)
        while held := list(islice(rows, 1000)):
            waiting: dict[str, list[bytes]] = {}
            for event, _, raw in held:
                waiting.setdefault(event.segment, []).append(raw + b"\n")
            for name, lines in waiting.items():
                if not is_segment(name):
                    self.lost += len(lines)
                    continue
                if name not in parts:
                    parts[name] = new_part(self._run / segment_file(name))
                append(parts[name], b"".join(lines))
        self.made += [finish(part) for part in parts.values()]
        gone = {one.name for one in sealed} - parts.keys()
        self.lost += sum(one.events for one in self._told_by_index() if one.name in gone)

    def _told_by_index(self) -> list[SealedSegment]:
        index = read_index(self._run)
        return index.segments if isinstance(index, SealIndex) else []

    def _aside(self, *names: str, copy: bool = False) -> None:
        """Rename `NAME` to `NAME.damaged.TIMESTAMP`, if it exists. `copy`: it keeps its name as well, so that a file of
        that name always exists.
        """
        for name in names:
            path = self._run / name
            if not os.path.lexists(path):
                continue
            wanted = f"{path.name}.damaged.{clock.stamp(self._at)}"
            target = path.with_name(wanted)
            again = 1
            while os.path.lexists(target):
                again += 1
                target = path.with_name(f"{wanted}.{again}")
            try:
                (os.link if copy else os.rename)(path, target)
            except OSError:  # a file system without links
                os.rename(path, target)
            self.moved.append(target)


def _breaks(run: Path, sealed: list[Segment], plain: frozenset[str]) -> bool:
    """Return whether the sealed lines themselves are damaged, whatever the manifest says about them."""
    chains = {one.name: Chain(one.name, decoder_for(one.format), pass_over) for one in sealed}
    check_sealed(run, chains, plain, lambda *_: None, pass_over)
    return any(chain.damaged for chain in chains.values())


def _only_blobs(found: Verification) -> bool:
    """Return whether missing blobs, which cannot be repaired, are the only damage."""
    return len(found.damages) + found.more == len(found.blobs_missing)

"""Is the sealed file what was sealed? Knows its frames, its index and the chains of the segments in
it; not the rest of the run.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from pathlib import Path

from playhead.events import Damage, Event
from playhead.tape.chain import Chain
from playhead.tape.lines import blocks
from playhead.tape.rows import Report
from playhead.tape.sealed.seal_index import FILE, INDEX, Index, Indexer, read_index
from playhead.tape.sealed.sealed_reader import frames_of

Look = Callable[[Event, bytes], None]


def check_sealed(
    run: Path, chains: dict[str, Chain], plain: frozenset[str], look: Look, report: Report
) -> None:
    """Every frame, line and number. Segments in `plain` are read from files of their own."""
    indexer = Indexer()
    row = offset = 0
    for frame, compressed, raw in frames_of(run / FILE, report):
        for event, line in indexer.add(frame, compressed, raw):
            row += 1
            if event is None:
                why = "this row is no event"
                report(Damage(segment=FILE, line=row, offset=offset, why=why))
            elif event.segment in chains:
                chains[event.segment].event(event, line)
                look(event, line)
            elif event.segment not in plain:
                why = f"it belongs to segment {event.segment[:80]!r}, which the index does not know"
                report(Damage(segment=FILE, line=row, offset=offset, why=why))
            offset += len(line) + 1
    for chain in chains.values():
        chain.close()
    told = read_index(run)
    if isinstance(told, Index):
        _compare(told, indexer.index(), _sha256(run / FILE), report)
    else:
        report(Damage(segment=INDEX, line=0, offset=0, why=told))


def _compare(told: Index, found: Index, sha256: str, report: Report) -> None:
    if told.sha256 != sha256:
        why = f"altered: its SHA-256 is {sha256}, the index says {told.sha256[:64]}"
        report(Damage(segment=FILE, line=0, offset=0, why=why))
    for one in dataclasses.fields(Index):
        said, is_so = getattr(told, one.name), getattr(found, one.name)
        if one.name not in ("sha256", "format") and said != is_so:
            shown = f": {said!r}, not {is_so!r}" if not isinstance(said, list) else ""
            why = f"its {one.name} are not what {FILE} holds{shown}"[:200]
            report(Damage(segment=INDEX, line=0, offset=0, why=why))


def _sha256(path: Path) -> str:
    told = hashlib.sha256()
    for block in blocks(path):
        told.update(block)
    return told.hexdigest()

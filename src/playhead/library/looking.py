"""What has changed in a store since the catalogue was last brought up to date. Knows which runs have to
be looked at; not how a catalogue is kept.

Looking at every manifest takes five microseconds each: half a second for a hundred thousand. So a run
is looked at where it is new, where it claims to go on, and where somebody has left word.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from playhead.library.rows import Row, row_of
from playhead.library.shelf import Shelf


class Ledger(Protocol):
    """Rows as they are kept. Two hold them: `index`, quick to load, and `catalogue database`."""

    def version(self) -> str | None:
        """That of the shelf when it was last looked through."""

    def stamps(self) -> Mapping[str, str]: ...

    def claiming(self) -> Mapping[str, tuple[str, str]]:
        """Runs that claim to go on: id → (stamp, status)."""

    def stamps_of(self, ids: Iterable[str]) -> Mapping[str, str]: ...

    def update(self, rows: Sequence[Row], gone: Iterable[str], version: str | None) -> None: ...


def look(shelf: Shelf, ledger: Ledger) -> None:
    """Bring `ledger` up to date with the manifests on `shelf`."""
    version = shelf.version()
    words = shelf.announced()
    claiming = ledger.claiming()
    stamps: dict[str, str] = {run: stamp for run, (stamp, _) in claiming.items()}
    stamps.update(ledger.stamps_of(words))
    new: set[str] = set()
    gone: set[str] = set()
    relisted = version is None or version != ledger.version()
    if relisted:
        there, known = set(shelf.ids()), ledger.stamps().keys()
        new, gone = there - known, set(known - there)
    rows = []
    for run in {*new, *words, *claiming} - gone:
        row = _looked_at(shelf, run, stamps.get(run), claiming.get(run))
        if isinstance(row, Row):
            rows.append(row)
        elif row is None and run in stamps:
            gone.add(run)
    if rows or gone or relisted:
        ledger.update(sorted(rows, key=lambda row: (row.started_ns, row.id)), gone, version)
    if words:
        shelf.heard(words)


def _looked_at(
    shelf: Shelf, run: str, known: str | None, claim: tuple[str, str] | None
) -> Row | str | None:
    """The row that has to be written; the stamp: it holds as it is; None: there is no such run."""
    stamp = shelf.stamp(run)
    if stamp is None:
        return None
    # The dead stay dead; one that lives may have died since.
    if stamp == known and (claim is None or claim[1] != "running"):
        return stamp
    row = row_of(shelf, run, stamp)
    return stamp if stamp == known and claim is not None and claim[1] == row.status else row

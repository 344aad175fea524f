"""What has changed in a store since the catalogue was last brought up to date. Knows which runs have to
be looked at; not how a catalogue is kept.

Looking at every manifest takes five microseconds each: half a second for a hundred thousand. So a run
is looked at where it is new, where it claims to go on, and where somebody has left word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from playhead.library.rows import Row, row_of
from playhead.library.shelf import Shelf

# Rows in one transaction: of a store that was never looked at, the newest are there at once.
_AT_ONCE = 2000
_TOLD_EVERY = 100
# Told how many are done, and how many there are.
Progress = Callable[[int, int], None]


class Ledger(Protocol):
    """Rows as they are kept. Two hold them: `index`, quick to load, and `catalogue database`."""

    def version(self) -> str | None:
        """That of the shelf when it was last looked through."""

    def stamps(self) -> Mapping[str, str]: ...

    def claiming(self) -> Mapping[str, tuple[str, str]]:
        """Runs that claim to go on: id → (stamp, status)."""

    def stamps_of(self, ids: Iterable[str]) -> Mapping[str, str]: ...

    def update(self, rows: Sequence[Row], gone: Iterable[str], version: str | None) -> None: ...


def look(shelf: Shelf, ledger: Ledger, progress: Progress | None = None) -> None:
    """Bring `ledger` up to date with the manifests on `shelf`, newest runs first."""
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
    # Names of runs begin with their time.
    due = sorted({*new, *words, *claiming} - gone, reverse=True)
    rows: list[Row] = []
    for done, run in enumerate(due, 1):
        row = _looked_at(shelf, run, stamps.get(run), claiming.get(run))
        if isinstance(row, Row):
            rows.append(row)
        elif row is None and run in stamps:
            gone.add(run)
        if progress is not None and not done % _TOLD_EVERY:
            progress(done, len(due))
        if len(rows) == _AT_ONCE and done < len(due):
            # Whoever comes before all are there has to look for the others: no version yet.
            ledger.update(_in_time(rows), (), None)
            rows = []
    if rows or gone or relisted:
        ledger.update(_in_time(rows), gone, version)
    if words:
        shelf.heard(words)


def _in_time(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row.started_ns, row.id))


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

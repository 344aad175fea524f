"""List the runs of a store by project, status, tag, name and age, newest first.

Knows manifests and the rows of the database; brings those rows up to date by scanning the store.
Does not read tapes.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from playhead.errors import PlayheadError
from playhead.events import Status
from playhead.host.later import Later
from playhead.library import database
from playhead.library.catalogue_url import catalogue_url
from playhead.library.database import CatalogueRows, LightRow
from playhead.library.run_rows import RunRow, Summary, decode_summary, encode_summary, row_of
from playhead.library.shelf import FolderShelf, Shelf
from playhead.tape.manifest import Manifest, from_members, read_manifest, status_of

if TYPE_CHECKING:
    from playhead.library import engine, server_rows
    from playhead.library.server_rows import ServerRows
else:
    # Importing SQLAlchemy takes longer than listing runs from the SQLite file.
    engine = Later("playhead.library.engine")
    server_rows = Later("playhead.library.server_rows")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A run in the catalogue. `problem`: why its manifest cannot be read; the run is listed all the same."""

    path: Path
    manifest: Manifest
    status: Status
    problem: str | None = None

    @property
    def id(self) -> str:
        return self.path.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """The filters of a list. Empty: all runs."""

    project: str | None = None
    statuses: frozenset[str] = frozenset()
    tags: tuple[tuple[str, str | None], ...] = ()
    name: str | None = None
    since_ns: int | None = None
    replays: bool = True


class Library:
    """The runs of one store, as they are at the first query."""

    def __init__(self, home: Path, progress: Progress | None = None) -> None:
        self.home = home
        self._progress = progress
        self._shelf = FolderShelf(home)

    @cached_property
    def _index(self) -> CatalogueRows | ServerRows | None:
        """Open the index and bring it up to date. None: nothing was ever recorded here."""
        if not (self.home / "runs").is_dir():
            return None
        try:
            return self._looked()
        except sqlite3.DatabaseError as error:
            if not database.is_damage(error):
                raise
            database.discard(self.home)
            return self._looked()

    def _looked(self) -> CatalogueRows | ServerRows:
        if catalogue_url(self.home) is None:
            index = CatalogueRows(self.home)
            scan(self._shelf, index, self._progress)
            return index
        db = engine.database_of(self.home)
        rows = server_rows.ServerRows(db)
        engine.sound(db, lambda: scan(self._shelf, rows, self._progress))
        return rows

    def scan(self) -> None:
        """Bring the catalogue up to date now, instead of at the first query."""
        _ = self._index

    def entries(self, wanted: Filter) -> Iterator[Entry]:
        """Yield entries, newest first. Lazy: a caller that takes twenty entries has twenty manifests decoded."""
        index = self._index
        if index is None:
            return
        for row in index.newest_first(project=wanted.project, since_ns=wanted.since_ns):
            if not _fits(row, wanted, index):
                continue
            number, run, problem = row[0], row[1], row[6]
            entry = decode_entry(self._shelf.path(run), index.manifest(number), problem)
            # Only now is it known whether a run whose manifest says "running" is still running.
            if not wanted.statuses or entry.status in wanted.statuses:
                yield entry

    def summary(self, entry: Entry, state: str) -> Summary | None:
        """Return the summary that was computed earlier for exactly this state of the run, if there is one."""
        raw = None if self._index is None else self._index.summary(entry.id)
        return None if raw is None else decode_summary(raw, state)

    def keep_summaries(self, made: Mapping[str, tuple[str, Summary]]) -> None:
        if self._index is not None:
            self._index.keep_summaries(
                {run: encode_summary(state, summary) for run, (state, summary) in made.items()}
            )


def entries(home: Path, wanted: Filter) -> Iterator[Entry]:
    """Newest first."""
    return Library(home).entries(wanted)


def entry_at(path: Path) -> Entry:
    """Return the entry of a run in any folder, inside a store or not."""
    try:
        manifest = read_manifest(path)
    except PlayheadError as error:
        return _broken(path, str(error))
    return Entry(path=path, manifest=manifest, status=status_of(manifest))


def decode_entry(path: Path, raw: bytes, problem: str | None) -> Entry:
    """Decode the entry of a run from the catalogue."""
    if problem is not None:
        return _broken(path, problem)
    manifest = from_members(json.loads(raw), path)
    return Entry(path=path, manifest=manifest, status=status_of(manifest))


def _broken(path: Path, problem: str) -> Entry:
    blank = Manifest(run=path.name, name="?", status="interrupted")
    return Entry(path=path, manifest=blank, status="interrupted", problem=problem)


def _fits(row: LightRow, wanted: Filter, index: CatalogueRows | ServerRows) -> bool:
    number, _, _, status, name, replay_of, _ = row
    # A run that was in progress at the last scan may have ended since.
    if wanted.statuses and status not in wanted.statuses and status != "running":
        return False
    if wanted.name is not None and not fnmatchcase(name, wanted.name):
        return False
    if not wanted.replays and replay_of is not None:
        return False
    if not wanted.tags:
        return True
    has = index.tags(number)
    return all(key in has and value in (None, has[key]) for key, value in wanted.tags)


# Rows per transaction: for a store that was never scanned, the newest runs are visible at once.
_AT_ONCE = 2000
_TOLD_EVERY = 100
# Called with the number of runs that are done, and the total.
Progress = Callable[[int, int], None]


class Ledger(Protocol):
    """Stores rows. Implemented by `database.CatalogueRows`, which is quick to load, and by `ledger.CoreLedger`."""

    def version(self) -> str | None:
        """Return the version of the shelf at the last complete scan."""

    def stamps(self) -> Mapping[str, str]: ...

    def claiming(self) -> Mapping[str, tuple[str, str]]:
        """Return runs whose manifest says that they are in progress: id → (stamp, status)."""

    def stamps_of(self, ids: Iterable[str]) -> Mapping[str, str]: ...

    def update(self, rows: Sequence[RunRow], gone: Iterable[str], version: str | None) -> None: ...


def scan(shelf: Shelf, ledger: Ledger, progress: Progress | None = None) -> None:
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
    # Ids of runs begin with their time.
    due = sorted({*new, *words, *claiming} - gone, reverse=True)
    rows: list[RunRow] = []
    for done, run in enumerate(due, 1):
        row = _looked_at(shelf, run, stamps.get(run), claiming.get(run))
        if isinstance(row, RunRow):
            rows.append(row)
        elif row is None and run in stamps:
            gone.add(run)
        if progress is not None and not done % _TOLD_EVERY:
            progress(done, len(due))
        if len(rows) == _AT_ONCE and done < len(due):
            # No version is written yet: a reader that comes before all rows are there must scan for the others.
            ledger.update(_in_time(rows), (), None)
            rows = []
    if rows or gone or relisted:
        ledger.update(_in_time(rows), gone, version)
    if words:
        shelf.heard(words)


def _in_time(rows: Iterable[RunRow]) -> list[RunRow]:
    return sorted(rows, key=lambda row: (row.started_ns, row.id))


def _looked_at(
    shelf: Shelf, run: str, known: str | None, claim: tuple[str, str] | None
) -> RunRow | str | None:
    """Return the row to write, or the stamp if the row is still valid, or None if the run does not exist."""
    stamp = shelf.stamp(run)
    if stamp is None:
        return None
    # An ended run stays ended; a run that was in progress may have ended since.
    if stamp == known and (claim is None or claim[1] != "running"):
        return stamp
    row = row_of(shelf, run, stamp)
    return stamp if stamp == known and claim is not None and claim[1] == row.status else row

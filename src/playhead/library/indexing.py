"""Bring the catalogue up to date with the tapes, or rebuild it. Knows the order of steps; `digest` reads and
`ledger` writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, delete, insert, select
from sqlalchemy import update as sql_update

from playhead import clock, config
from playhead.library.catalogue import Progress, scan
from playhead.library.digest import Digest, digest
from playhead.library.engine import (
    Database,
    Unwritable,
    calls,
    database_of,
    documents,
    facts,
    runs,
    sound,
    tags,
)
from playhead.library.ledger import CoreLedger, batches, put_digests, put_whole
from playhead.library.run_rows import RunRow, row_of, stamp_of_prices
from playhead.library.shelf import FolderShelf, Shelf
from playhead.library.text_index import index_of
from playhead.story import Prices
from playhead.tape.manifest import Manifest

# Runs per transaction: other processes may write in between, and finished work stays.
_AT_ONCE = 250
# The process that is rebuilding the catalogue.
_REINDEXER = "reindexer"


class Reader:
    """Reads tapes for the catalogue, at these prices."""

    def __init__(self, shelf: Shelf, overrides: Mapping[str, Any] | None = None) -> None:
        own = config.load().sections.get("prices", {}) if overrides is None else overrides
        self.shelf = shelf
        self.stamp = stamp_of_prices(own)
        self._prices = Prices(overrides=own)

    def read(self, run_id: str, manifest: Manifest | None = None) -> tuple[str, Digest]:
        """Read one run. Its state is taken first, so that a run that grows meanwhile is read again next time."""
        state = self.shelf.state(run_id, self.stamp)
        tape = self.shelf.tape(run_id)
        if manifest is not None:
            tape.manifest = manifest
        return state, digest(tape, self._prices)


def update(
    home: Path,
    *,
    prices: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    read: bool = True,
) -> None:
    """Bring the catalogue up to date with new, changed and deleted runs. `read=False`: use only the manifests."""
    db, shelf = database_of(home), FolderShelf(home)

    def work() -> None:
        with db.updating:
            scan(shelf, CoreLedger(db), progress)
        if read:
            # A separate lock: a list does not wait until all tapes are read for a search.
            with db.reading_tapes:
                _succeed(db)
                _read_missing(db, Reader(shelf, prices), progress)

    if (home / "runs").is_dir():
        sound(db, work)


def try_update(home: Path, **how: Any) -> None:
    """As `update`, but if the catalogue cannot be written now, its present contents are used."""
    with suppress(Unwritable):
        update(home, **how)


def refresh(home: Path, run_ids: Sequence[str], reader: Reader) -> None:
    """Read these runs again: they are in progress, or have changed."""
    db = database_of(home)
    due = [run for run in run_ids if _pace.is_due(home, run)]
    if not due:
        return
    with db.updating, suppress(Unwritable):
        known = sound(db, lambda: _states(db, due))
        made = []
        for run in due:
            row = _row(reader.shelf, run)
            # Another thread may have read it while this one waited.
            if row is not None and known.get(run) != reader.shelf.state(run, reader.stamp):
                with _pace.taken(home, run):
                    made.append((row, *reader.read(run, row.parsed)))
        if made:
            sound(db, lambda: _put(db, made))


def _states(db: Database, run_ids: Sequence[str]) -> dict[str, str | None]:
    with db.reading() as connection:
        ask = select(runs.c.id, runs.c.state).where(runs.c.id.in_(run_ids))
        return dict(connection.execute(ask).all())


class _Pace:
    """Limits how often a long tape that grows is read again. After a reading that took long, the next one must wait
    several times as long. For servers; a command reads once.
    """

    _LONG_NS = 250_000_000
    _REST = 5

    def __init__(self) -> None:
        self._until: dict[tuple[Path, str], int] = {}

    def is_due(self, home: Path, run_id: str) -> bool:
        return clock.mono_ns() >= self._until.get((home, run_id), 0)

    @contextmanager
    def taken(self, home: Path, run_id: str) -> Iterator[None]:
        # Processor time: on a busy machine the wall time says nothing about the length of the tape.
        began = clock.cpu_ns()
        yield
        took = clock.cpu_ns() - began
        if took > self._LONG_NS:
            self._until[home, run_id] = clock.mono_ns() + took * self._REST
        else:
            self._until.pop((home, run_id), None)


_pace = _Pace()


def reindex(
    home: Path, *, prices: Mapping[str, Any] | None = None, progress: Progress | None = None
) -> int:
    """Read every run again, whatever the catalogue says, and return their number. Lists keep working meanwhile,
    and searches find the runs that have been read so far.
    """
    db, shelf = database_of(home), FolderShelf(home)
    reader = Reader(shelf, prices)

    def work() -> int:
        version, ids = shelf.version(), list(shelf.ids())
        ledger = CoreLedger(db)
        ledger.update((), ledger.stamps().keys() - set(ids), None)
        with db.writing() as connection:
            _clear(connection)
        try:
            _read_all(db, reader, sorted(ids), progress)
        except BaseException:
            with db.writing() as connection:
                _give_up(connection)
            raise
        with db.writing() as connection:
            connection.execute(delete(facts))
        ledger.update((), (), version)
        return len(ids)

    return sound(db, work) if (home / "runs").is_dir() else 0


def _clear(connection: Connection) -> None:
    """Delete everything that came from tapes; rows stay until they are replaced. The process leaves its name: if it
    dies before it has finished, others can tell.
    """
    index_of(connection.dialect.name).clear(connection)
    connection.execute(delete(calls))
    connection.execute(delete(facts))
    for column in (documents.c.run, tags.c.run):
        orphans = column.not_in(select(runs.c.number))
        connection.execute(delete(column.table).where(orphans))
    name = f"{clock.pid()} {clock.process_birth(clock.pid())}"
    connection.execute(insert(facts), {"name": _REINDEXER, "value": name})


def _read_all(db: Database, reader: Reader, ids: Sequence[str], progress: Progress | None) -> None:
    """Read all runs, oldest first: then new rows are written next to the previous ones."""
    done = 0
    for some in batches(ids, _AT_ONCE):
        rows = [_row(reader.shelf, run) for run in some]
        _put(db, [(row, *reader.read(row.id, row.parsed)) for row in rows if row is not None])
        done += len(some)
        if progress is not None:
            progress(done, len(ids))


def _give_up(connection: Connection) -> None:
    """Mark all runs as unread: the text of those that were not read again is gone."""
    connection.execute(sql_update(runs).values(state=None))
    connection.execute(delete(facts).where(facts.c.name == _REINDEXER))


def _succeed(db: Database) -> None:
    """Take over from a process that died while it rebuilt the catalogue."""
    with db.reading() as connection:
        ask = select(facts.c.value).where(facts.c.name == _REINDEXER)
        name = connection.execute(ask).scalar_one_or_none()
    if name is None:
        return
    pid, _, birth = name.partition(" ")
    if clock.process_birth(int(pid)) != birth:
        with db.writing() as connection:
            _give_up(connection)


def _read_missing(db: Database, reader: Reader, progress: Progress | None) -> None:
    """Read runs that were never read, and runs that have grown since (in progress, or interrupted). Newest first,
    because they are requested most.
    """
    columns = runs.c.number, runs.c.id
    with db.reading() as connection:
        new = connection.execute(select(*columns).where(runs.c.state.is_(None))).all()
        ask = select(*columns, runs.c.state).where(runs.c.claims, runs.c.state.is_not(None))
        open_ones = connection.execute(ask).all()
    grown = [
        (number, run)
        for number, run, state in open_ones
        if reader.shelf.state(run, reader.stamp) != state and _pace.is_due(db.home, run)
    ]
    missing = sorted({*((number, run) for number, run in new), *grown}, reverse=True)
    done = 0
    if progress is not None and missing:
        progress(0, len(missing))
    for some in batches(missing, _AT_ONCE):
        made = []
        for number, run in reversed(some):
            with _pace.taken(db.home, run):
                made.append((number, *reader.read(run)))
        with db.writing() as connection:
            put_digests(connection, made)
        done += len(some)
        if progress is not None:
            progress(done, len(missing))


def _put(db: Database, made: Sequence[tuple[RunRow, str, Digest]]) -> None:
    with db.writing() as connection:
        put_whole(connection, made)


def _row(shelf: Shelf, run_id: str) -> RunRow | None:
    stamp = shelf.stamp(run_id)
    return None if stamp is None else row_of(shelf, run_id, stamp)

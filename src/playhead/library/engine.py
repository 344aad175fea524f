"""One door to the catalogue's database for everything that asks more than `index` can. Knows SQLAlchemy's
engines and how SQLite is shared by processes and threads; not what is asked.

A team's PostgreSQL is `postgres.PostgresDatabase`, put in the place of a store's own file with `use`.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool, StaticPool

from playhead.errors import StoreError
from playhead.library import database

T = TypeVar("T")

_MOST_CONNECTIONS = 64


class Database:
    """The catalogue of one store, for all threads of this process."""

    def __init__(self, home: Path) -> None:
        self.home = home
        # Held by the thread that brings the catalogue up to date; the others then find that done.
        self.updating = threading.RLock()
        # Likewise, by the one that reads tapes which were never read.
        self.reading_tapes = threading.RLock()
        self._lock = threading.Lock()
        self._file = _identity(home)
        self._engine = _made(home)

    @property
    def dialect(self) -> str:
        return "sqlite"

    @property
    def place(self) -> str:
        return str(self.home / database.FILE)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self._current().connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """All or nothing, one writer at a time; the others wait for their turn."""
        with self._current().connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection
            connection.commit()

    def _current(self) -> Engine:
        """Somebody may have deleted the file: then there is a new one, and it is that which counts."""
        with self._lock:
            there = _identity(self.home)
            if there != self._file:
                self._engine.dispose()
                self._engine = _made(self.home)
                self._file = _identity(self.home)
            return self._engine

    def is_damage(self, error: BaseException) -> bool:
        """Whether the catalogue itself is at fault, and `renew` would help."""
        return database.is_damage(error)

    def renew(self) -> None:
        """After damage."""
        with self._lock:
            self._engine.dispose()
            database.discard(self.home)
            self._engine = _made(self.home)
            self._file = _identity(self.home)


class Unwritable(StoreError):
    """Somebody else writes for long, or the disk is full: what the catalogue says still holds."""


def sound(db: Database, work: Callable[[], T]) -> T:
    """`work` on a catalogue that is whole: where it turns out to be damaged, on a new one."""
    try:
        return work()
    except DBAPIError as error:
        if error.orig is None or not db.is_damage(error.orig):
            raise _unwritable(db, error) from error
    db.renew()
    try:
        return work()
    except DBAPIError as error:
        raise _unwritable(db, error) from error


def _unwritable(db: Database, error: DBAPIError) -> Unwritable:
    return Unwritable(
        f"{db.place} cannot be used ({error.orig}). Try again, or delete it: it comes back."
    )


_open: dict[Path, Database] = {}
_opening = threading.Lock()


def database_of(home: Path) -> Database:
    """The one that this process has of that store."""
    with _opening:
        found = _open.get(home)
        if found is None:
            found = _open[home] = Database(home)
        return found


def use(home: Path, db: Database | None) -> None:
    """Keep the catalogue of that store there; None: in its own file again."""
    with _opening:
        if db is None:
            _open.pop(home, None)
        else:
            _open[home] = db


def _made(home: Path) -> Engine:
    first = database.open_database(home)
    in_memory = not first.execute("PRAGMA database_list").fetchone()[2]
    if in_memory:
        return create_engine("sqlite://", creator=lambda: first, poolclass=StaticPool)
    first.close()
    engine = create_engine(
        "sqlite://",
        creator=lambda: database.open_database(home),
        poolclass=QueuePool,
        pool_size=4,
        max_overflow=_MOST_CONNECTIONS,
    )
    event.listen(engine, "reset", _roll_back)
    return engine


def _roll_back(connection: sqlite3.Connection, *_: object) -> None:
    """Before it goes back to the others: in autocommit mode nobody else would."""
    if connection.in_transaction:
        connection.rollback()


def _identity(home: Path) -> tuple[int, int] | None:
    try:
        state = (home / database.FILE).stat()
    except OSError:
        return None
    return state.st_dev, state.st_ino

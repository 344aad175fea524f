"""The catalogue's tables, and the connections to its database.

Knows SQLAlchemy and how processes and threads share one SQLite file. Does not know the queries. One table
definition serves every database; each database has its own full-text index (`text_index`).

A store's own SQLite file can be replaced with PostgreSQL (`postgres.PostgresDatabase`) by the setting
`[library] url`, and in tests by `use`.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Engine,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    column,
    create_engine,
    event,
    table,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool, StaticPool
from sqlalchemy.schema import CreateIndex, CreateTable

from playhead.errors import StoreError
from playhead.host.later import Later
from playhead.library import database, fulltext
from playhead.library.catalogue_url import catalogue_url, schema_of

if TYPE_CHECKING:
    from playhead.library import postgres
else:
    postgres = Later("playhead.library.postgres")  # it needs the tables of this module

metadata = MetaData()

# The number of a run is its start time (see `run_rows.numbered`): the newest runs have the highest numbers.
_NUMBER = BigInteger().with_variant(Integer(), "sqlite")

# Sorted by code points and not by the server's language: pages are cut at a name.
_SORTED = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")

# The columns that runs are filtered and sorted by. Narrow, because a scan reads the whole table.
runs = Table(
    "runs",
    metadata,
    Column("number", _NUMBER, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False, unique=True),
    Column("stamp", Text, nullable=False),
    Column("started_ns", BigInteger, nullable=False),
    Column("status", Text, nullable=False),
    Column("claims", Boolean, nullable=False),
    Column("project", Text, nullable=False),
    Column("name", _SORTED, nullable=False),
    Column("replay_of", Text),
    Column("keep", Boolean, nullable=False),
    Column("golden", Boolean, nullable=False),
    Column("duration_s", Float),
    Column("problem", Text),
    # The state of the tape from which the columns below were made; None: the tape must be read.
    Column("state", Text),
    Column("tokens", BigInteger),
    Column("cost_usd", Float),
    Column("failures", Integer),
    Column("failed_turns", Integer),
)
Index("runs_by_status", runs.c.status, runs.c.number)
Index("runs_by_project", runs.c.project, runs.c.number)
# SQLite uses a partial index only if the query repeats its condition literally, as SQLAlchemy writes it.
_claims = text("claims = 1")
Index("runs_by_claim", runs.c.claims, sqlite_where=_claims, postgresql_where=runs.c.claims)
_unread = runs.c.state.is_(None)
Index("runs_unread", runs.c.number, sqlite_where=_unread, postgresql_where=_unread)

# The data that is shown for a run: looked up by id, never scanned.
documents = Table(
    "documents",
    metadata,
    Column("run", _NUMBER, primary_key=True, autoincrement=False),
    Column("manifest", LargeBinary, nullable=False),
    Column("summary", LargeBinary),
)

tags = Table(
    "tags",
    metadata,
    Column("run", _NUMBER, primary_key=True, autoincrement=False),
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
    sqlite_with_rowid=False,
)
Index("tags_by_key", tags.c.key, tags.c.value, tags.c.run)

# The calls of a run, summed by name and duration bucket (see `digest.bucket`).
calls = Table(
    "calls",
    metadata,
    Column("run", _NUMBER, primary_key=True, autoincrement=False),
    # model, tool, http, process…
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("bucket", Integer, primary_key=True, autoincrement=False),
    Column("calls", Integer, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("input_tokens", BigInteger),
    Column("output_tokens", BigInteger),
    Column("cost_usd", Float),
    sqlite_with_rowid=False,
)
Index("calls_by_name", calls.c.kind, calls.c.name, calls.c.run)

# Facts about the catalogue itself.
facts = Table(
    "facts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text),
)


# The full-text index as queries see it; SQLite creates it.
texts = table("texts", column("rowid", _NUMBER))


def statements() -> list[str]:
    """Return the statements that turn an empty SQLite file into a catalogue; `schema` has a copy."""
    dialect = sqlite.dialect()
    made: list[str] = []
    for one in metadata.sorted_tables:
        made.append(str(CreateTable(one).compile(dialect=dialect)))
        indexes = sorted(one.indexes, key=lambda index: str(index.name))
        made += [str(CreateIndex(index).compile(dialect=dialect)) for index in indexes]
    tidy = ("\n".join(filter(None, map(str.rstrip, said.splitlines()))) for said in made)
    return [*(said.replace("\t", "  ") for said in tidy), fulltext.TABLE]


T = TypeVar("T")

_MOST_CONNECTIONS = 64
# Stores whose connections stay open between two queries.
_MOST_OPEN = 16


class Database:
    """The catalogue of one store, for all threads of this process."""

    def __init__(self, home: Path) -> None:
        self.home = home
        # Held by the thread that updates the catalogue; the others then find it up to date.
        self.updating = threading.RLock()
        # Held by the thread that reads tapes which were never read, in the same way.
        self.reading_tapes = threading.RLock()
        self._lock = threading.Lock()
        self._file = _identity(home)
        self._engine = _made(home)

    @property
    def dialect(self) -> str:
        return "sqlite"

    @property
    def most_counted(self) -> int | None:
        """Return how many matches of a query are counted at most; None: all of them."""
        return None

    @property
    def place(self) -> str:
        return str(self.home / database.FILE)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self._current().connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a transaction for writing. There is one writer at a time; the others wait."""
        with self._current().connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection
            connection.commit()

    def _current(self) -> Engine:
        """Return the engine of the current file. If the file was deleted, open a new one."""
        with self._lock:
            there = _identity(self.home)
            if there != self._file:
                self._engine.dispose()
                self._engine = _made(self.home)
                self._file = _identity(self.home)
            return self._engine

    def is_damage(self, error: BaseException) -> bool:
        """Return whether the catalogue itself is damaged, so that `renew` would help."""
        return database.is_damage(error)

    def explained(self, error: DBAPIError) -> str:
        """Return the message for the user."""
        return f"{self.place} cannot be used ({error.orig}). Try again, or delete it: Playhead rebuilds it."

    def renew(self) -> None:
        """Replace a damaged catalogue with a new one."""
        with self._lock:
            self._engine.dispose()
            database.discard(self.home)
            self._engine = _made(self.home)
            self._file = _identity(self.home)

    def close(self) -> None:
        """Close idle connections; a later query opens new ones. A catalogue in memory stays open: it exists only
        there.
        """
        if not isinstance(self._engine.pool, StaticPool):
            self._engine.dispose()


class Unwritable(StoreError):
    """Another process holds the lock for long, or the disk is full. The catalogue's contents are still valid."""


def sound(db: Database, work: Callable[[], T]) -> T:
    """Run `work`. If the catalogue turns out to be damaged, replace it with a new one and run `work` again."""
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
    return Unwritable(db.explained(error))


_open: dict[Path, Database] = {}
_opening = threading.Lock()


def database_of(home: Path) -> Database:
    """Return this process's database object for that store."""
    with _opening:
        found = _open.get(home)
        if found is None:
            url = catalogue_url(home)
            found = _open[home] = (
                Database(home)
                if url is None
                else postgres.PostgresDatabase(home, url, schema_of(home))
            )
            # A process that opens many stores must not keep the files of all of them open.
            for older in islice(reversed(_open.values()), _MOST_OPEN, _MOST_OPEN + 1):
                older.close()
        return found


def use(home: Path, db: Database | None) -> None:
    """Use this database for the catalogue of a store; None: its own file again."""
    with _opening:
        before = _open.pop(home, None)
        if db is not None:
            _open[home] = db
    if before is not None and before is not db:
        before.close()


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
    """Roll back before the connection returns to the pool: in autocommit mode SQLAlchemy does not."""
    if connection.in_transaction:
        connection.rollback()


def _identity(home: Path) -> tuple[int, int] | None:
    try:
        state = (home / database.FILE).stat()
    except OSError:
        return None
    return state.st_dev, state.st_ino

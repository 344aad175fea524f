"""The catalogue in PostgreSQL: connections, transactions, and the versions of its tables. See also `text_index`."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import (
    Column,
    Connection,
    Integer,
    Table,
    create_engine,
    delete,
    func,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from playhead import clock
from playhead.errors import StoreError, UsageError
from playhead.library import engine
from playhead.library.engine import Database
from playhead.library.fulltext import SCOPES
from playhead.library.text_index import (
    LEXEMES_OF_VERSION_2,
    MOST_COUNTED,
    metadata,
    words,
)

# An advisory lock: one writer at a time among all users of the server.
_WRITING = 0x706C6179
# The error codes of a missing table or column.
_DAMAGE = ("42P01", "42703")
_FORBIDDEN = "42501"


# Increase with every change of the tables, and add a migration.
VERSION = 3
_CONNECT_S = 10
# Connections of one process: a server answers many people at once. The usual server accepts 97 clients in all.
_FEW_CONNECTIONS, _MORE_CONNECTIONS = 5, 59
# What a server answers that has no free connection. Drivers give no error code for it.
_CROWDED = ("too many clients", "remaining connection slots", "too many connections")
_PATIENCE_S = 30
# Compiling a query takes longer than our queries do. A plan must suit its words: one that is made for any word
# reads the whole table for a rare one.
_SETTINGS = "-c jit=off -c plan_cache_mode=force_custom_plan"


class PostgresDatabase(Database):
    """The catalogue of one store on a server. `url` is in the form of SQLAlchemy: postgresql+psycopg://….

    `schema` is that of this store, so that many stores share a database; None: the server's default.
    """

    def __init__(self, home: Path, url: str, schema: str | None = None) -> None:
        self.home = home
        self.updating = threading.RLock()
        self.reading_tapes = threading.RLock()
        self.url = url
        self._schema = schema
        options = _SETTINGS if schema is None else f"{_SETTINGS} -c search_path={schema}"
        try:
            self._engine = create_engine(
                url,
                pool_pre_ping=True,
                pool_size=_FEW_CONNECTIONS,
                max_overflow=_MORE_CONNECTIONS,
                pool_timeout=_PATIENCE_S,
                connect_args={"connect_timeout": _CONNECT_S, "options": options},
            )
        except ArgumentError as error:
            raise UsageError(f"library.url is not an address of a database: {error}") from None
        except ImportError:
            raise UsageError(
                "A catalogue in PostgreSQL needs the extra `postgres`: pip install 'playhead[postgres]'."
            ) from None
        self._make()

    def _make(self) -> None:
        """Create or migrate the tables. One query if there is nothing to do."""
        try:
            with self.reading() as connection:
                found = _version(connection)
            if found == VERSION:
                return
            with self.writing() as connection:
                self._migrate(connection)
        except DBAPIError as error:
            self.close()
            raise CatalogueUnavailable(self.explained(error)) from None
        except CatalogueUnavailable:
            self.close()
            raise

    def _migrate(self, connection: Connection) -> None:
        found = _version(connection)  # check again: another process may have been faster
        if found is not None and found > VERSION:
            raise CatalogueUnavailable(
                f"The catalogue on {self.place} was made by a newer Playhead (version {found} of its tables; this one "
                f"knows {VERSION}). Upgrade this Playhead."
            )
        if self._schema is not None:
            connection.execute(text(f'CREATE SCHEMA IF NOT EXISTS "{self._schema}"'))
        if found is None and not inspect(connection).has_table(engine.runs.name):
            engine.metadata.create_all(connection)
        metadata.create_all(connection)
        for step in range(found or 1, VERSION):
            for statement in MIGRATIONS[step]:
                connection.execute(text(statement))
        connection.execute(delete(versions))
        connection.execute(insert(versions), {"version": VERSION})

    @property
    def dialect(self) -> str:
        return "postgresql"

    @property
    def most_counted(self) -> int | None:
        return MOST_COUNTED

    @property
    def place(self) -> str:
        return str(self._engine.url.render_as_string(hide_password=True))

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self._connected() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        with self._connected() as connection, connection.begin():
            connection.execute(select(func.pg_advisory_xact_lock(_WRITING, self._lock_number)))
            yield connection

    def _connected(self) -> Connection:
        """Return a connection. Wait for one if the server has none left: other clients return theirs soon."""
        until_ns, pause_s = clock.mono_ns() + _PATIENCE_S * 10**9, 0.02
        while True:
            try:
                return self._engine.connect()
            except OperationalError as error:
                crowded = any(said in str(error.orig) for said in _CROWDED)
                if not crowded or clock.mono_ns() > until_ns:
                    raise CatalogueUnavailable(self.explained(error)) from None
            except PoolTimeout:
                raise CatalogueUnavailable(
                    f"All {_FEW_CONNECTIONS + _MORE_CONNECTIONS} connections to {self.place} are in use."
                ) from None
            clock.sleep(pause_s)
            pause_s = min(pause_s * 1.5, 1.0)

    @property
    def _lock_number(self) -> int:
        """Return the number of the lock. Writers of one store wait for each other; other stores have other tables."""
        return zlib.crc32((self._schema or "").encode()) & 0x7FFFFFFF

    def explained(self, error: DBAPIError) -> str:
        said = str(error.orig).strip()
        first = said.partition("\n")[0]
        if "password" in said or "authentication failed" in said:
            return f"{self.place} refuses the user or the password ({first}). Set PGPASSWORD, or use ~/.pgpass."
        if getattr(error.orig, "sqlstate", None) == _FORBIDDEN:
            return f"{self.place}: {first}. Grant CREATE on the database to this user."
        if isinstance(error, OperationalError):
            return (
                f"The catalogue on {self.place} cannot be reached ({first}). Runs are still recorded, and "
                "listed when the server is back."
            )
        return f"The catalogue on {self.place} cannot be used ({first}). `playhead reindex` rebuilds it."

    def is_damage(self, error: BaseException) -> bool:
        return getattr(error, "sqlstate", None) in _DAMAGE

    def renew(self) -> None:
        with self.writing() as connection:
            for one in (*engine.metadata.sorted_tables, words, versions):
                connection.execute(text(f"DROP TABLE IF EXISTS {one.name}"))
        self._make()


class CatalogueUnavailable(StoreError):
    """The server does not answer, refuses, or has tables of another version."""


def _version(connection: Connection) -> int | None:
    """Return the version of the tables. None: there are no tables, or they are older than version numbers."""
    if connection.execute(select(func.to_regclass(versions.name))).scalar_one() is None:
        return None
    found = connection.execute(select(versions.c.version)).scalar()
    return None if found is None else int(found)


versions = Table("schema_version", metadata, Column("version", Integer, primary_key=True))
# Version → the statements that lead to the next one.
MIGRATIONS: dict[int, tuple[str, ...]] = {
    1: ("CREATE INDEX IF NOT EXISTS runs_by_name ON runs (name, number)",),
    2: (
        *(f"DROP INDEX IF EXISTS texts_by_{scope}" for scope in SCOPES),
        "ALTER TABLE texts ADD COLUMN IF NOT EXISTS lexemes tsvector NOT NULL DEFAULT ''",
        LEXEMES_OF_VERSION_2,
        "CREATE INDEX IF NOT EXISTS texts_by_lexeme ON texts USING gin (lexemes)",
    ),
}

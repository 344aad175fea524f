"""The catalogue of a store on a PostgreSQL server. Knows its transactions; everything that is asked of it is
asked as of SQLite.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, create_engine, func, select, text

from playhead.library import tables, tsvector
from playhead.library.engine import Database

# One writer at a time, whoever else uses the server.
_WRITING = 0x706C6179
# A table is not there, or a column of it.
_DAMAGE = ("42P01", "42703")


class PostgresDatabase(Database):
    """`url` as SQLAlchemy has it: postgresql+psycopg://…, a database or a schema for this store alone."""

    def __init__(self, home: Path, url: str) -> None:
        self.home = home
        self.updating = threading.RLock()
        self.reading_tapes = threading.RLock()
        self.url = url
        self._engine = create_engine(url)
        self._make()

    def _make(self) -> None:
        with self.writing() as connection:
            tables.metadata.create_all(connection)
            tsvector.metadata.create_all(connection)

    @property
    def dialect(self) -> str:
        return "postgresql"

    @property
    def place(self) -> str:
        return str(self._engine.url.render_as_string(hide_password=True))

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self._engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        with self._engine.begin() as connection:
            connection.execute(select(func.pg_advisory_xact_lock(_WRITING)))
            yield connection

    def is_damage(self, error: BaseException) -> bool:
        return getattr(error, "sqlstate", None) in _DAMAGE

    def renew(self) -> None:
        with self.writing() as connection:
            for one in (*tables.metadata.sorted_tables, tsvector.words):
                connection.execute(text(f"DROP TABLE IF EXISTS {one.name}"))
        self._make()

    def close(self) -> None:
        self._engine.dispose()

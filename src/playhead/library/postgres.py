"""The catalogue in PostgreSQL: its transactions, and full-text search with `tsvector`.

Knows PostgreSQL's text functions; the rules of queries and snippets are in `fulltext`.
"""

from __future__ import annotations

import re
import threading
import unicodedata
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    FromClause,
    Index,
    Integer,
    MetaData,
    Select,
    Table,
    Text,
    and_,
    cast,
    create_engine,
    delete,
    func,
    insert,
    inspect,
    or_,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import TSQUERY, TSVECTOR
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError

from playhead.errors import StoreError, UsageError
from playhead.library import engine
from playhead.library.engine import Database
from playhead.library.fulltext import BEGIN, END, SCOPES, Phrase, Scope, Snippet, phrases, snippets

# An advisory lock: one writer at a time among all users of the server.
_WRITING = 0x706C6179
# The error codes of a missing table or column.
_DAMAGE = ("42P01", "42703")
_FORBIDDEN = "42501"


# Increase with every change of the tables, and add a migration.
VERSION = 2
_CONNECT_S = 5


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
        options = {} if schema is None else {"options": f"-c search_path={schema}"}
        try:
            self._engine = create_engine(
                url, pool_pre_ping=True, connect_args={"connect_timeout": _CONNECT_S, **options}
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
        try:
            return self._engine.connect()
        except OperationalError as error:
            raise CatalogueUnavailable(self.explained(error)) from None

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
                f"The catalogue on {self.place} cannot be reached ({first}). Runs are recorded all the same, and "
                "listed when the server is back."
            )
        return f"The catalogue on {self.place} cannot be used ({first}). `playhead reindex` makes it again."

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


metadata = MetaData()
versions = Table("schema_version", metadata, Column("version", Integer, primary_key=True))
# Version → the statements that lead to the next one.
MIGRATIONS: dict[int, tuple[str, ...]] = {
    1: ("CREATE INDEX IF NOT EXISTS runs_by_name ON runs (name, number)",),
}
words = Table(
    "texts",
    metadata,
    Column("run", BigInteger, primary_key=True, autoincrement=False),
    *(Column(scope, Text, nullable=False) for scope in SCOPES),
    *(Column(f"{scope}_words", TSVECTOR, nullable=False) for scope in SCOPES),
)
for _scope in SCOPES:
    Index(f"texts_by_{_scope}", words.c[f"{_scope}_words"], postgresql_using="gin")

# A word as FTS5's unicode61 tokenizer defines it.
_WORD = re.compile(r"[^\W_]+")
# PostgreSQL stores no position beyond this one, no more positions per word, and no longer words.
_LAST_PLACE = 16_383
_MOST_PLACES = 255
_LONGEST = 500


class TsVector:
    """See `text_index.TextIndex`."""

    @property
    def table(self) -> FromClause:
        return words

    @property
    def number(self) -> ColumnElement[int]:
        return words.c.run

    def put(self, connection: Connection, texts: Sequence[Mapping[str, Any]]) -> None:
        if texts:
            connection.execute(insert(words), [_row(one) for one in texts])

    def drop(self, connection: Connection, numbers: Sequence[int]) -> None:
        if numbers:
            connection.execute(delete(words).where(words.c.run.in_(numbers)))

    def clear(self, connection: Connection) -> None:
        connection.execute(delete(words))

    def holds(self, typed: str, scope: Scope | None) -> ColumnElement[bool] | None:
        """Return the condition that each phrase is completely in one of the scopes, as in FTS5."""
        asked = [told for one in phrases(typed) if (told := _query(one))]
        if not asked:
            return None
        scopes = SCOPES if scope is None else (scope,)
        return and_(
            *(
                or_(*(words.c[f"{one}_words"].op("@@")(cast(told, TSQUERY)) for one in scopes))
                for told in asked
            )
        )

    def matching(self, typed: str, scope: Scope | None) -> Select[Any]:
        fits = self.holds(typed, scope)
        return select(words.c.run) if fits is None else select(words.c.run).where(fits)

    def snippets(
        self, connection: Connection, number: int, typed: str, scope: Scope | None
    ) -> tuple[Snippet, ...]:
        asked = phrases(typed)
        ask = select(*(words.c[one] for one in SCOPES)).where(words.c.run == number)
        row = connection.execute(ask).first()
        if row is None or not asked:
            return ()
        shown = (
            _marked(said, asked) if scope in (None, one) else None
            for one, said in zip(SCOPES, row, strict=True)
        )
        return snippets(tuple(shown))


def _row(texts: Mapping[str, Any]) -> dict[str, Any]:
    vectors = {f"{scope}_words": _vector(texts[scope]) for scope in SCOPES}
    return {"run": texts["run"], **{scope: texts[scope] for scope in SCOPES}, **vectors}


def _vector(said: str) -> str:
    places: dict[str, list[int]] = {}
    for at, (word, _, _) in enumerate(_cut(said), 1):
        places.setdefault(word, []).append(min(at, _LAST_PLACE))
    return " ".join(
        f"'{word}':{','.join(map(str, found[:_MOST_PLACES]))}" for word, found in places.items()
    )


def _query(phrase: Phrase) -> str:
    """`'rate' <-> 'limit'`; with a star the last word matches as a prefix."""
    cut = [word for word, _, _ in _cut(phrase.text)]
    return " <-> ".join(f"'{word}'" for word in cut) + (":*" if cut and phrase.goes_on else "")


def _marked(said: str, asked: Sequence[Phrase]) -> str:
    """Return the text with marks around each hit."""
    cut = list(_cut(said))
    spans: list[tuple[int, int]] = []
    for phrase in asked:
        wanted = [word for word, _, _ in _cut(phrase.text)]
        spans += _hits(cut, wanted, goes_on=phrase.goes_on) if wanted else ()
    parts: list[str] = []
    at = 0
    for start, end in sorted(spans):
        if start >= at:
            parts += [said[at:start], BEGIN, said[start:end], END]
            at = end
    return "".join([*parts, said[at:]])


def _hits(
    cut: Sequence[tuple[str, int, int]], wanted: Sequence[str], *, goes_on: bool
) -> Iterator[tuple[int, int]]:
    for at in range(len(cut) - len(wanted) + 1):
        last = cut[at + len(wanted) - 1][0]
        ends = last.startswith(wanted[-1]) if goes_on else last == wanted[-1]
        if ends and all(cut[at + n][0] == word for n, word in enumerate(wanted[:-1])):
            yield cut[at][1], cut[at + len(wanted) - 1][2]


def _cut(said: str) -> Iterator[tuple[str, int, int]]:
    """Yield words without case and accents, each with its position."""
    for hit in _WORD.finditer(said):
        yield _folded(hit[0][:_LONGEST]), hit.start(), hit.end()


@lru_cache(maxsize=65_536)
def _folded(word: str) -> str:
    if word.isascii():
        return word.lower()
    apart = unicodedata.normalize("NFKD", word)
    return "".join(one for one in apart if not unicodedata.combining(one)).lower()

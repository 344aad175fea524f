"""Full-text search in the catalogue: one interface, with FTS5 for SQLite and `tsvector` for PostgreSQL.

The rules of queries and snippets are in `fulltext`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from sqlalchemy import ColumnElement, Connection, FromClause, Select, TextClause, text

from playhead.library import fulltext
from playhead.library.engine import runs, texts
from playhead.library.fulltext import SCOPES, Scope, Snippet
from playhead.library.postgres import TsVector


class TextIndex(Protocol):
    """A full-text index. Rows have the numbers of runs."""

    @property
    def table(self) -> FromClause: ...

    @property
    def number(self) -> ColumnElement[int]: ...

    def put(self, connection: Connection, texts: Sequence[Mapping[str, Any]]) -> None:
        """Add rows, each with its `run` and a text for every scope."""

    def drop(self, connection: Connection, numbers: Sequence[int]) -> None: ...

    def clear(self, connection: Connection) -> None: ...

    def holds(self, typed: str, scope: Scope | None) -> ColumnElement[bool] | TextClause | None:
        """The condition on a row of `table`. None: the typed text contains no word."""

    def matching(self, typed: str, scope: Scope | None) -> Select[Any] | Any:
        """Return the numbers of the runs that match the condition."""

    def snippets(
        self, connection: Connection, number: int, typed: str, scope: Scope | None
    ) -> tuple[Snippet, ...]: ...


_PUT = text(
    f"INSERT INTO texts (rowid, {', '.join(SCOPES)}) VALUES (:run, {', '.join(f':{s}' for s in SCOPES)})"  # noqa: S608  names of columns
)
_DROP = text("DELETE FROM texts WHERE rowid = :run")


class Fts5:
    """See `text_index.TextIndex`."""

    @property
    def table(self) -> FromClause:
        return texts

    @property
    def number(self) -> ColumnElement[int]:
        return texts.c.rowid

    def put(self, connection: Connection, texts: Sequence[Mapping[str, Any]]) -> None:
        if texts:
            connection.execute(_PUT, texts)

    def drop(self, connection: Connection, numbers: Sequence[int]) -> None:
        if numbers:
            connection.execute(_DROP, [{"run": number} for number in numbers])

    def clear(self, connection: Connection) -> None:
        connection.execute(text("DROP TABLE texts"))
        connection.execute(text(fulltext.TABLE))

    def holds(self, typed: str, scope: Scope | None) -> TextClause | None:
        asked = fulltext.question(typed, scope)
        return None if asked is None else text(fulltext.MATCH).bindparams(question=asked)

    def matching(self, typed: str, scope: Scope | None) -> Any:
        asked = fulltext.question(typed, scope)
        return text(fulltext.MATCHING).bindparams(question=asked).columns(runs.c.number)

    def snippets(
        self, connection: Connection, number: int, typed: str, scope: Scope | None
    ) -> tuple[Snippet, ...]:
        asked = fulltext.question(typed, scope)
        if asked is None:
            return ()
        values = {"question": asked, "run": number}
        row = connection.execute(text(fulltext.SNIPPETS), values).first()
        return () if row is None else fulltext.snippets(tuple(row[1:]))


_INDEXES: dict[str, TextIndex] = {"sqlite": Fts5(), "postgresql": TsVector()}


def index_of(dialect: str) -> TextIndex:
    return _INDEXES[dialect]

"""The full-text index as everything else sees it, whichever database holds it. Knows which there are; each
knows its own SQL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from sqlalchemy import ColumnElement, Connection, FromClause, Select, TextClause

from playhead.library.fts5 import Fts5
from playhead.library.fulltext import Scope, Snippet
from playhead.library.tsvector import TsVector


class TextIndex(Protocol):
    """Rows are numbered as runs are."""

    @property
    def table(self) -> FromClause: ...

    @property
    def number(self) -> ColumnElement[int]: ...

    def put(self, connection: Connection, texts: Sequence[Mapping[str, Any]]) -> None:
        """Each with its `run` and a text for every scope."""

    def drop(self, connection: Connection, numbers: Sequence[int]) -> None: ...

    def clear(self, connection: Connection) -> None: ...

    def holds(self, typed: str, scope: Scope | None) -> ColumnElement[bool] | TextClause | None:
        """What has to hold of a row of `table`. None: there is no word in what was typed."""

    def matching(self, typed: str, scope: Scope | None) -> Select[Any] | Any:
        """The numbers of the runs of which that holds."""

    def snippets(
        self, connection: Connection, number: int, typed: str, scope: Scope | None
    ) -> tuple[Snippet, ...]: ...


_INDEXES: dict[str, TextIndex] = {"sqlite": Fts5(), "postgresql": TsVector()}


def index_of(dialect: str) -> TextIndex:
    return _INDEXES[dialect]

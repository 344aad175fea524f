"""Rows of a catalogue on a server, for `list` and `last`: the counterpart of `database.CatalogueRows` for the SQLite
file.

Rows come a page at a time, with everything that a list shows of them, so that twenty runs need one query and not
sixty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from sqlalchemy import Select, or_, select, update

from playhead.library.database import LightRow
from playhead.library.engine import Database, documents, runs, sound, tags
from playhead.library.ledger import CoreLedger

# Rows of the first page, and of every later one.
_FIRST, _LATER = 50, 500
_COLUMNS = (
    runs.c.number,
    runs.c.id,
    runs.c.started_ns,
    runs.c.status,
    runs.c.name,
    runs.c.replay_of,
    runs.c.problem,
)


class ServerRows(CoreLedger):
    """Reads rows in pages. Keeps the newest page, for the queries about its rows that follow."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self._manifests: dict[int, bytes] = {}
        self._summaries: dict[str, bytes | None] = {}
        self._tags: dict[int, dict[str, str]] = {}

    def newest_first(self, *, project: str | None, since_ns: int | None) -> Iterator[LightRow]:
        ask = select(*_COLUMNS, documents.c.manifest, documents.c.summary).join(
            documents, documents.c.run == runs.c.number, isouter=True
        )
        ask = ask.where(runs.c.number >= (since_ns or 0)).order_by(runs.c.number.desc())
        if project is not None:
            ask = ask.where(or_(runs.c.project == project, runs.c.project == ""))
        page, last = _FIRST, None
        while True:
            paged = ask if last is None else ask.where(runs.c.number < last)
            rows = sound(self._db, partial(self._page, paged, page))
            yield from (tuple(row[: len(_COLUMNS)]) for row in rows)
            if len(rows) < page:
                return
            last, page = rows[-1][0], _LATER

    def _page(self, ask: Select[Any], size: int) -> list[Any]:
        with self._db.reading() as connection:
            rows = connection.execute(ask.limit(size)).all()
            of_these = tags.c.run.in_([row[0] for row in rows])
            said = connection.execute(select(tags.c.run, tags.c.key, tags.c.value).where(of_these))
            self._tags = {}
            for number, key, value in said:
                self._tags.setdefault(number, {})[key] = value
        self._manifests = {row[0]: bytes(row[-2] or b"") for row in rows}
        # Summaries of all pages: a list reads them after its last row.
        self._summaries.update({row[1]: row[-1] for row in rows})
        return list(rows)

    def tags(self, number: int) -> dict[str, str]:
        return self._tags.get(number, {})

    def manifest(self, number: int) -> bytes:
        return self._manifests.get(number, b"")

    def summary(self, run: str) -> bytes | None:
        found = self._summaries.get(run)
        return None if found is None else bytes(found)

    def keep_summaries(self, made: Mapping[str, bytes]) -> None:
        """Store summaries. They stay until the whole catalogue is updated from the tape, which overwrites them."""

        def work() -> None:
            with self._db.writing() as connection:
                for run, raw in made.items():
                    number = select(runs.c.number).where(runs.c.id == run).scalar_subquery()
                    change = update(documents).where(documents.c.run == number)
                    connection.execute(change.values(summary=raw))

        sound(self._db, work)

"""The rows of the catalogue by the shortest way: `playhead list` and `last` in a tenth of a second,
where SQLAlchemy alone would take half a second to load. Knows a handful of statements on the tables of
`tables`, on this machine's SQLite only; everything that asks more goes through `library`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from playhead.library import database
from playhead.library.rows import Row, numbered

# number, id, started_ns, status, name, replay_of, problem
LightRow = tuple[int, str, int, str, str, "str | None", "str | None"]

_COLUMNS = (
    *("id", "stamp", "started_ns", "status", "claims", "project", "name"),
    *("replay_of", "keep", "golden", "duration_s", "problem"),
)
_PUT = f"""
INSERT INTO runs (number, {", ".join(_COLUMNS)}) VALUES (?{", ?" * len(_COLUMNS)})
ON CONFLICT (number) DO UPDATE SET state = NULL,
  {", ".join(f"{name} = excluded.{name}" for name in _COLUMNS)}
"""  # noqa: S608  names of columns, all written above
_PUT_MANIFEST = """
INSERT INTO documents (run, manifest) VALUES (?, ?)
ON CONFLICT (run) DO UPDATE SET manifest = excluded.manifest
"""
# The full-text index forgets a run when it is read again, or when it is gone.
_DROP = {
    "tags": "DELETE FROM tags WHERE run = ?",
    "calls": "DELETE FROM calls WHERE run = ?",
    "documents": "DELETE FROM documents WHERE run = ?",
    "texts": "DELETE FROM texts WHERE rowid = ?",
    "runs": "DELETE FROM runs WHERE number = ?",
}


class Index:
    """Open until it is collected; a command opens one and ends."""

    def __init__(self, home: Path) -> None:
        self._db = database.open_database(home, patience_s=2)

    def version(self) -> str | None:
        found = self._db.execute("SELECT value FROM facts WHERE name = 'version'").fetchone()
        return found[0] if found else None

    def stamps(self) -> dict[str, str]:
        return dict(self._db.execute("SELECT id, stamp FROM runs"))

    def claiming(self) -> dict[str, tuple[str, str]]:
        ask = "SELECT id, stamp, status FROM runs WHERE claims = 1"
        return {run: (stamp, status) for run, stamp, status in self._db.execute(ask)}

    def stamps_of(self, ids: Iterable[str]) -> dict[str, str]:
        ask = "SELECT stamp FROM runs WHERE id = ?"
        found = ((run, self._db.execute(ask, (run,)).fetchone()) for run in ids)
        return {run: row[0] for run, row in found if row is not None}

    def update(self, rows: Sequence[Row], gone: Iterable[str], version: str | None) -> None:
        """New and changed rows in, runs that are no more out; a changed one has to be read anew."""
        try:
            self._write(rows, list(gone), version)
        except sqlite3.DatabaseError:
            # Read-only, full, or held by somebody else for long: the rows are needed all the same.
            self._db = database.in_memory(self._db)
            self._write(rows, list(gone), version)

    def _write(self, rows: Sequence[Row], gone: list[str], version: str | None) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        with self._db:
            known = self._numbers([*(row.id for row in rows), *gone])
            placed = list(numbered(rows, known, _Taken(self._db)))
            moved = {known[row.id] for at, row in placed if known.get(row.id, at) != at}
            for number in moved | {known[run] for run in gone if run in known}:
                for statement in _DROP.values():
                    self._db.execute(statement, (number,))
            values = [(at, *(getattr(row, name) for name in _COLUMNS)) for at, row in placed]
            self._db.executemany(_PUT, values)
            self._db.executemany(_PUT_MANIFEST, [(at, row.manifest) for at, row in placed])
            self._db.executemany(_DROP["tags"], [(at,) for at, _ in placed])
            self._db.executemany(
                "INSERT INTO tags VALUES (?, ?, ?)",
                [(at, key, value) for at, row in placed for key, value in row.tags.items()],
            )
            fact = "INSERT OR REPLACE INTO facts VALUES ('version', ?)"
            self._db.execute(fact, (version,))

    def _numbers(self, ids: Iterable[str]) -> dict[str, int]:
        ask = "SELECT number FROM runs WHERE id = ?"
        found = ((run, self._db.execute(ask, (run,)).fetchone()) for run in ids)
        return {run: row[0] for run, row in found if row is not None}

    def newest_first(self, *, project: str | None, since_ns: int | None) -> Iterator[LightRow]:
        ask = (
            "SELECT number, id, started_ns, status, name, replay_of, problem FROM runs "
            "WHERE (?1 IS NULL OR project IN (?1, '')) AND number >= ?2 "
            "ORDER BY number DESC"
        )
        return iter(self._db.execute(ask, (project, since_ns or 0)))

    def tags(self, number: int) -> dict[str, str]:
        return dict(self._db.execute("SELECT key, value FROM tags WHERE run = ?", (number,)))

    def manifest(self, number: int) -> bytes:
        ask = "SELECT manifest FROM documents WHERE run = ?"
        found = self._db.execute(ask, (number,)).fetchone()
        return bytes(found[0]) if found else b""

    def summary(self, run: str) -> bytes | None:
        ask = "SELECT summary FROM documents JOIN runs ON documents.run = runs.number WHERE id = ?"
        found = self._db.execute(ask, (run,)).fetchone()
        return None if found is None else found[0]

    def keep_summaries(self, made: Mapping[str, bytes]) -> None:
        """Until the tape is read for the whole catalogue, which overwrites it."""
        ask = "UPDATE documents SET summary = ? WHERE run = (SELECT number FROM runs WHERE id = ?)"
        try:
            self._db.execute("BEGIN IMMEDIATE")
            with self._db:
                self._db.executemany(ask, [(raw, run) for run, raw in made.items()])
        except sqlite3.DatabaseError:
            return  # told all the same, and made again next time


class _Taken:
    """Which numbers are given away."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __contains__(self, number: object) -> bool:
        ask = "SELECT 1 FROM runs WHERE number = ?"
        return self._db.execute(ask, (number,)).fetchone() is not None

"""The catalogue on disk: one row a run in SQLite. Knows SQL and when a row no longer holds; not
what the rows mean.

Derived: whatever it says can be found again in the runs' own folders. So a damaged one is thrown
away, one of another version too, and where none can be written the rows live in memory.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

FILE = "library.db"
# Goes up with every change of the table below, or of what is put into it.
_VERSION = 1
# What is looked through stands apart from what is only looked up: a scan then reads a tenth.
_TABLES = """
DROP TABLE IF EXISTS runs;
DROP TABLE IF EXISTS documents;
CREATE TABLE runs (
  id TEXT PRIMARY KEY, stamp TEXT NOT NULL, started_ns INTEGER NOT NULL, status TEXT NOT NULL,
  project TEXT NOT NULL, name TEXT NOT NULL, tags TEXT NOT NULL, replay_of TEXT, problem TEXT
) WITHOUT ROWID;
CREATE INDEX by_time ON runs (started_ns, id);
CREATE TABLE documents (
  id TEXT PRIMARY KEY, manifest BLOB NOT NULL, summary_stamp TEXT, summary BLOB
) WITHOUT ROWID;
"""
_LIGHT = "id, started_ns, status, project, name, tags, replay_of, problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A run as it is filtered. `manifest` is the file's own text; b"" where it cannot be read."""

    id: str
    stamp: str
    started_ns: int
    status: str
    project: str
    name: str
    # JSON.
    tags: str
    replay_of: str | None
    problem: str | None
    manifest: bytes


# id, started_ns, status, project, name, tags, replay_of, problem
LightRow = tuple[str, int, str, str, str, str, "str | None", "str | None"]


class Index:
    """Open until it is collected; a command opens one and ends."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE
        try:
            self._db = _opened(self._path)
        except sqlite3.DatabaseError:
            self._db = self._anew()

    def _anew(self) -> sqlite3.Connection:
        """After damage: away with it. Where that is not possible either, in memory."""
        with suppress(OSError):
            self._path.unlink()
        try:
            return _opened(self._path)
        except sqlite3.DatabaseError:
            return _prepared(sqlite3.connect(":memory:"))

    def stamps(self) -> dict[str, str]:
        return dict(self._db.execute("SELECT id, stamp FROM runs"))

    def update(self, rows: Iterable[Row], gone: Iterable[str]) -> None:
        """New and changed rows in, runs that are no more out; a changed run needs a new summary."""
        fresh = list(rows)
        light = Row.__slots__[:-1]
        self._write(
            "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [tuple(getattr(row, name) for name in light) for row in fresh],
        )
        self._write(
            "INSERT OR REPLACE INTO documents VALUES (?, ?, NULL, NULL)",
            [(row.id, row.manifest) for row in fresh],
        )
        out = [(one,) for one in gone]
        self._write("DELETE FROM runs WHERE id = ?", out)
        self._write("DELETE FROM documents WHERE id = ?", out)

    def newest_first(self, *, project: str | None, since_ns: int | None) -> Iterator[LightRow]:
        where = "(? IS NULL OR project = ? OR problem IS NOT NULL) AND started_ns >= ?"
        return iter(
            self._db.execute(
                f"SELECT {_LIGHT} FROM runs WHERE {where} ORDER BY started_ns DESC, id DESC",  # noqa: S608  no value is spliced in
                (project, project, since_ns or 0),
            )
        )

    def manifest(self, run: str) -> bytes:
        found = self._db.execute("SELECT manifest FROM documents WHERE id = ?", (run,)).fetchone()
        return bytes(found[0]) if found else b""

    def summary(self, run: str) -> tuple[str | None, bytes | None]:
        """What is kept, and the stamp of what it was made from."""
        ask = "SELECT summary_stamp, summary FROM documents WHERE id = ?"
        found: tuple[str | None, bytes | None] | None = self._db.execute(ask, (run,)).fetchone()
        return found or (None, None)

    def keep_summaries(self, made: Mapping[str, tuple[str, bytes]]) -> None:
        self._write(
            "UPDATE documents SET summary_stamp = ?, summary = ? WHERE id = ?",
            [(stamp, raw, run) for run, (stamp, raw) in made.items()],
        )

    def _write(self, statement: str, values: Sequence[tuple[object, ...]]) -> None:
        if not values:
            return
        try:
            with self._db:
                self._db.executemany(statement, values)
        except sqlite3.DatabaseError:
            # Read-only, full, or held by somebody else for long: the rows are needed all the same.
            self._db = _copied_to_memory(self._db)
            with self._db:
                self._db.executemany(statement, values)


def _opened(path: Path) -> sqlite3.Connection:
    with suppress(OSError):  # SQLite says it better
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    return _prepared(sqlite3.connect(path, timeout=2))


def _prepared(db: sqlite3.Connection) -> sqlite3.Connection:
    # Whatever a power cut leaves is noticed when it is opened, and made anew.
    db.execute("PRAGMA synchronous = OFF")
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version != _VERSION:
        db.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {_VERSION}; COMMIT;")
    db.execute("SELECT 1 FROM runs, documents LIMIT 1").fetchone()
    return db


def _copied_to_memory(db: sqlite3.Connection) -> sqlite3.Connection:
    memory = sqlite3.connect(":memory:")
    db.backup(memory)
    return memory

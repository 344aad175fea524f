"""The catalogue's SQLite file: its schema, opening it, and reading its rows without SQLAlchemy.

`playhead list` must answer within a tenth of a second, and importing SQLAlchemy takes longer than
that. A damaged, missing or outdated file is created again: the tapes are the truth.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from playhead.library.fulltext import TABLE
from playhead.library.run_rows import RunRow, numbered

FILE = "library.db"
PATIENCE_S = 3.0
_TABLES = ("runs", "documents", "calls", "tags", "facts", "texts")
_DAMAGE = ("malformed", "not a database", "no such table", "no such column")


def open_database(home: Path, *, patience_s: float | None = None) -> sqlite3.Connection:
    """Open the database in autocommit mode. Writers use BEGIN IMMEDIATE, so they wait for each other."""
    path = home / FILE
    patience = PATIENCE_S if patience_s is None else patience_s
    try:
        return _opened(path, patience)
    except sqlite3.DatabaseError:
        return _anew(path, patience)


def is_damage(error: BaseException) -> bool:
    """Return whether the file is damaged, as opposed to locked, full or read-only."""
    said = str(error)
    return isinstance(error, sqlite3.DatabaseError) and any(one in said for one in _DAMAGE)


def discard(home: Path) -> None:
    """Throw the file away, with what SQLite keeps beside it: an old log would be played into a new
    file.
    """
    with _alone(home):
        for suffix in ("", "-wal", "-shm"):
            with suppress(OSError):
                (home / f"{FILE}{suffix}").unlink()


def in_memory(db: sqlite3.Connection | None = None) -> sqlite3.Connection:
    """Return a catalogue in memory for this process; with `db`, a copy of that database."""
    memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    if db is not None:
        db.backup(memory)
    return _prepared(memory)


def _anew(path: Path, patience_s: float) -> sqlite3.Connection:
    discard(path.parent)
    try:
        return _opened(path, patience_s)
    except sqlite3.DatabaseError:
        return in_memory()


def _opened(path: Path, patience_s: float) -> sqlite3.Connection:
    with suppress(OSError):  # SQLite gives the better message
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    db = sqlite3.connect(path, timeout=patience_s, isolation_level=None, check_same_thread=False)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        return _prepared(db)
    except sqlite3.DatabaseError:
        db.close()
        raise


def _prepared(db: sqlite3.Connection) -> sqlite3.Connection:
    # Damage from a power cut is detected when the file is read, and the catalogue is then rebuilt.
    db.execute("PRAGMA synchronous = OFF")
    if _version(db) != VERSION:
        db.execute("BEGIN IMMEDIATE")
        if _version(db) != VERSION:  # no other process has done it already
            _make_tables(db)
        db.execute("COMMIT")
    for table in _TABLES:
        db.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone()  # noqa: S608  names from below
    return db


def _make_tables(db: sqlite3.Connection) -> None:
    if db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None:
        raise sqlite3.DatabaseError(
            "the catalogue has another version, or is not a catalogue of Playhead"
        )
    for statement in STATEMENTS:
        db.execute(statement)
    db.execute(f"PRAGMA user_version = {VERSION}")


def _version(db: sqlite3.Connection) -> int:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    return int(version)


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    try:
        fd = os.open(home, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        yield
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


# Increase with every change of the tables or of their contents.
VERSION = 3

STATEMENTS = (
    """CREATE TABLE calls (
  run INTEGER NOT NULL,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  bucket INTEGER NOT NULL,
  calls INTEGER NOT NULL,
  failures INTEGER NOT NULL,
  input_tokens BIGINT,
  output_tokens BIGINT,
  cost_usd FLOAT,
  PRIMARY KEY (run, kind, name, bucket)
)
 WITHOUT ROWID""",
    """CREATE INDEX calls_by_name ON calls (kind, name, run)""",
    """CREATE TABLE documents (
  run INTEGER NOT NULL,
  manifest BLOB NOT NULL,
  summary BLOB,
  PRIMARY KEY (run)
)""",
    """CREATE TABLE facts (
  name TEXT NOT NULL,
  value TEXT,
  PRIMARY KEY (name)
)""",
    """CREATE TABLE runs (
  number INTEGER NOT NULL,
  id TEXT NOT NULL,
  stamp TEXT NOT NULL,
  started_ns BIGINT NOT NULL,
  status TEXT NOT NULL,
  claims BOOLEAN NOT NULL,
  project TEXT NOT NULL,
  name TEXT NOT NULL,
  replay_of TEXT,
  keep BOOLEAN NOT NULL,
  golden BOOLEAN NOT NULL,
  duration_s FLOAT,
  problem TEXT,
  state TEXT,
  tokens BIGINT,
  cost_usd FLOAT,
  failures INTEGER,
  failed_turns INTEGER,
  PRIMARY KEY (number),
  UNIQUE (id)
)""",
    """CREATE INDEX runs_by_claim ON runs (claims) WHERE claims = 1""",
    """CREATE INDEX runs_by_project ON runs (project, number)""",
    """CREATE INDEX runs_by_status ON runs (status, number)""",
    """CREATE INDEX runs_unread ON runs (number) WHERE state IS NULL""",
    """CREATE TABLE tags (
  run INTEGER NOT NULL,
  "key" TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (run, "key")
)
 WITHOUT ROWID""",
    """CREATE INDEX tags_by_key ON tags ("key", value, run)""",
    TABLE,
)


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
# Delete a run from the full-text index when it is read again, or when it no longer exists.
_DROP = {
    "tags": "DELETE FROM tags WHERE run = ?",
    "calls": "DELETE FROM calls WHERE run = ?",
    "documents": "DELETE FROM documents WHERE run = ?",
    "texts": "DELETE FROM texts WHERE rowid = ?",
    "runs": "DELETE FROM runs WHERE number = ?",
}


class CatalogueRows:
    """Rows of the SQLite file. Open until it is garbage-collected: a command opens one and ends."""

    def __init__(self, home: Path) -> None:
        self._db = open_database(home, patience_s=2)

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

    def update(self, rows: Sequence[RunRow], gone: Iterable[str], version: str | None) -> None:
        """Write new and changed rows, and delete the rows of runs that no longer exist. A changed run must be
        read again.
        """
        try:
            self._write(rows, list(gone), version)
        except sqlite3.DatabaseError:
            # The file is read-only, full, or locked for long: the rows are returned all the same.
            self._db = in_memory(self._db)
            self._write(rows, list(gone), version)

    def _write(self, rows: Sequence[RunRow], gone: list[str], version: str | None) -> None:
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
        """Store summaries. They stay until the whole catalogue is updated from the tape, which overwrites them."""
        ask = "UPDATE documents SET summary = ? WHERE run = (SELECT number FROM runs WHERE id = ?)"
        try:
            self._db.execute("BEGIN IMMEDIATE")
            with self._db:
                self._db.executemany(ask, [(raw, run) for run, raw in made.items()])
        except sqlite3.DatabaseError:
            return  # the user sees them all the same, and the next time they are made again


class _Taken:
    """The numbers that are in use, as a container."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __contains__(self, number: object) -> bool:
        ask = "SELECT 1 FROM runs WHERE number = ?"
        return self._db.execute(ask, (number,)).fetchone() is not None

"""The catalogue's file: opened, and made anew where it is damaged, deleted or of another version. Knows
SQLite; not what is in the tables.

Derived: whatever it says can be found again in the runs' own folders. So nothing here is ever lost,
and where no file can be written the catalogue lives in memory.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from playhead.library.schema import STATEMENTS, VERSION

FILE = "library.db"
PATIENCE_S = 3.0
_TABLES = ("runs", "documents", "calls", "tags", "facts", "texts")
_DAMAGE = ("malformed", "not a database", "no such table", "no such column")


def open_database(home: Path, *, patience_s: float | None = None) -> sqlite3.Connection:
    """Ready for use, in autocommit mode: who writes says BEGIN IMMEDIATE, and waits for the others."""
    path = home / FILE
    patience = PATIENCE_S if patience_s is None else patience_s
    try:
        return _opened(path, patience)
    except sqlite3.DatabaseError:
        return _anew(path, patience)


def is_damage(error: BaseException) -> bool:
    """The file is not what SQLite wrote; not: locked, full, read-only."""
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
    """A catalogue for this process alone; with `db`, a copy of that one."""
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
    with suppress(OSError):  # SQLite says it better
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    db = sqlite3.connect(path, timeout=patience_s, isolation_level=None, check_same_thread=False)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        return _prepared(db)
    except sqlite3.DatabaseError:
        db.close()
        raise


def _prepared(db: sqlite3.Connection) -> sqlite3.Connection:
    # Whatever a power cut leaves is noticed when it is read, and made anew.
    db.execute("PRAGMA synchronous = OFF")
    if _version(db) != VERSION:
        db.execute("BEGIN IMMEDIATE")
        if _version(db) != VERSION:  # nobody else was quicker
            _make_tables(db)
        db.execute("COMMIT")
    for table in _TABLES:
        db.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone()  # noqa: S608  names from below
    return db


def _make_tables(db: sqlite3.Connection) -> None:
    if db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None:
        raise sqlite3.DatabaseError(
            "the catalogue is of another version, or not a database of ours"
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

"""Compare two SQLite databases by their contents. Knows SQLite; does not know tapes.

SQLite has its own clock: `CURRENT_TIMESTAMP` and `datetime('now')` are read inside the library, where no hook
reaches. So two runs of one program leave databases whose rows differ in these timestamps, and in nothing else.
"""

from __future__ import annotations

import os
import re
import sqlite3
import tempfile
from contextlib import closing, suppress
from itertools import zip_longest
from typing import Any

_MAGIC = b"SQLite format 3\0"
# The file format of a database in WAL mode, which a database in memory cannot have.
_WAL, _ROLLBACK = b"\x02\x02", b"\x01\x01"
# The ending of the log of a database in WAL mode.
LOG = b"-wal"
_LARGEST = 64 * 1024 * 1024
# A timestamp as SQLite writes it: `2026-11-16 05:12:01`, with fractions of a second or without a time.
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?)?")


def is_database(data: bytes) -> bool:
    return data.startswith(_MAGIC) and len(data) <= _LARGEST


def with_log(data: bytes, log: bytes | None) -> bytes:
    """Return a database together with the changes in its log; None: it has no log. If they cannot be read, the database
    alone.
    """
    if not log:
        return data
    with tempfile.TemporaryDirectory() as folder, suppress(sqlite3.Error):
        path = os.path.join(os.fsencode(folder), b"copy.db")
        for name, content in ((path, data), (path + LOG, log)):
            with open(name, "wb") as file:
                file.write(content)
        with closing(sqlite3.connect(os.fsdecode(path))) as copy:
            copy.execute("pragma wal_checkpoint(truncate)").fetchall()
        with open(path, "rb") as file:
            return file.read()
    return data


def same_rows(before: bytes, after: bytes) -> bool:
    """Return whether two databases have the same tables and rows, apart from timestamps. False if one cannot be
    read.
    """
    try:
        with closing(_opened(before)) as old, closing(_opened(after)) as new:
            schemas = [one.execute(_SCHEMA).fetchall() for one in (old, new)]
            if schemas[0] != schemas[1]:
                return False
            tables = [name for kind, name, _ in schemas[0] if kind == b"table"]
            return all(_same_table(old, new, name) for name in tables)
    except (sqlite3.Error, AttributeError):  # this Python was built without `deserialize`
        return False


_SCHEMA = "select type, name, sql from sqlite_master order by type, name"


def _opened(data: bytes) -> sqlite3.Connection:
    made = sqlite3.connect(":memory:")
    if data[18:20] == _WAL:
        data = data[:18] + _ROLLBACK + data[20:]
    made.deserialize(data)  # type: ignore[attr-defined,unused-ignore]  # Python 3.11
    # Texts that are not UTF-8 are compared too.
    made.text_factory = bytes
    made.execute("pragma trusted_schema = off")
    return made


def _same_table(old: sqlite3.Connection, new: sqlite3.Connection, name: bytes) -> bool:
    quoted = name.decode("utf-8", "surrogateescape").replace('"', '""')
    query = f'select * from "{quoted}"'  # noqa: S608  a name of the schema, quoted
    pairs = zip_longest(old.execute(query), new.execute(query))
    return all(
        then is not None
        and now is not None
        and len(then) == len(now)
        and all(map(_same_value, then, now))
        for then, now in pairs
    )


def _same_value(then: Any, now: Any) -> bool:
    if then == now and type(then) is type(now):
        return True
    return _is_moment(then) and _is_moment(now)


def _is_moment(value: Any) -> bool:
    if not isinstance(value, bytes) or len(value) > 40:
        return False
    return _MOMENT.fullmatch(value.decode("ascii", "replace")) is not None

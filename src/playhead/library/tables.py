"""The tables of the catalogue. Knows SQLAlchemy's names for columns; not what fills them.

One definition for every database. The full-text index, which each has in its own way, is in `fulltext` and
`tsvector`.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    column,
    table,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from playhead.library import fulltext

metadata = MetaData()

# The number of a run is the moment it began (see `rows.numbered`): the newest have the highest.
_NUMBER = BigInteger().with_variant(Integer(), "sqlite")

# Sorted by its letters and not by the server's language: pages are cut at a name.
_SORTED = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")

# What runs are found and sorted by. Narrow: a scan reads all of it.
runs = Table(
    "runs",
    metadata,
    Column("number", _NUMBER, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False, unique=True),
    Column("stamp", Text, nullable=False),
    Column("started_ns", BigInteger, nullable=False),
    Column("status", Text, nullable=False),
    Column("claims", Boolean, nullable=False),
    Column("project", Text, nullable=False),
    Column("name", _SORTED, nullable=False),
    Column("replay_of", Text),
    Column("keep", Boolean, nullable=False),
    Column("golden", Boolean, nullable=False),
    Column("duration_s", Float),
    Column("problem", Text),
    # Of which state of the tape the columns below were made; None: it has to be read.
    Column("state", Text),
    Column("tokens", BigInteger),
    Column("cost_usd", Float),
    Column("failures", Integer),
)
Index("runs_by_status", runs.c.status, runs.c.number)
Index("runs_by_project", runs.c.project, runs.c.number)
# SQLite takes a partial index only where the question says the very same: as SQLAlchemy spells it.
_claims = text("claims = 1")
Index("runs_by_claim", runs.c.claims, sqlite_where=_claims, postgresql_where=runs.c.claims)
_unread = runs.c.state.is_(None)
Index("runs_unread", runs.c.number, sqlite_where=_unread, postgresql_where=_unread)

# What is shown of a run: looked up, never looked through.
documents = Table(
    "documents",
    metadata,
    Column("run", _NUMBER, primary_key=True, autoincrement=False),
    Column("manifest", LargeBinary, nullable=False),
    Column("summary", LargeBinary),
)

tags = Table(
    "tags",
    metadata,
    Column("run", _NUMBER, primary_key=True, autoincrement=False),
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
    sqlite_with_rowid=False,
)
Index("tags_by_key", tags.c.key, tags.c.value, tags.c.run)

# The calls of a run, summed up by what was called and how long it took (see `digest.bucket`).
calls = Table(
    "calls",
    metadata,
    Column("run", _NUMBER, primary_key=True, autoincrement=False),
    # model, tool, http, process…
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("bucket", Integer, primary_key=True, autoincrement=False),
    Column("calls", Integer, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("input_tokens", BigInteger),
    Column("output_tokens", BigInteger),
    Column("cost_usd", Float),
    sqlite_with_rowid=False,
)
Index("calls_by_name", calls.c.kind, calls.c.name, calls.c.run)

# What the catalogue knows about itself.
facts = Table(
    "facts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text),
)


# The full-text index as questions see it; how it is made is SQLite's own affair.
texts = table("texts", column("rowid", _NUMBER))


def statements() -> list[str]:
    """What makes an empty SQLite file a catalogue: to be copied into `schema`."""
    dialect = sqlite.dialect()
    made: list[str] = []
    for one in metadata.sorted_tables:
        made.append(str(CreateTable(one).compile(dialect=dialect)))
        indexes = sorted(one.indexes, key=lambda index: str(index.name))
        made += [str(CreateIndex(index).compile(dialect=dialect)) for index in indexes]
    tidy = ("\n".join(filter(None, map(str.rstrip, said.splitlines()))) for said in made)
    return [*(said.replace("\t", "  ") for said in tidy), fulltext.TABLE]

"""The tables of the catalogue as SQLite is told of them: what `tables` says, word for word (a test
compares), without the half second that SQLAlchemy takes to load.
"""

from __future__ import annotations

from playhead.library.fulltext import TABLE

# Goes up with every change of the tables, or of what is put into them.
VERSION = 2

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

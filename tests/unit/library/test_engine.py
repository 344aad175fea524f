from sqlalchemy import select
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

from playhead.library.database import STATEMENTS
from playhead.library.engine import metadata, runs, statements
from playhead.library.search import Search, conditions


def test_the_schema_is_what_the_tables_say():
    assert list(STATEMENTS) == statements()


def test_the_same_tables_and_questions_can_be_told_to_postgresql():
    dialect = postgresql.dialect()
    told = [str(CreateTable(one).compile(dialect=dialect)) for one in metadata.sorted_tables]
    told += [
        str(CreateIndex(index).compile(dialect=dialect))
        for one in metadata.sorted_tables
        for index in one.indexes
    ]
    assert any("number BIGINT NOT NULL" in one for one in told)
    assert any("WHERE claims" in one and "claims = 1" not in one for one in told)
    wanted = Search(
        statuses=frozenset({"ok"}), models=("gpt-*",), tags=(("env", "ci"),), replays=False
    )
    asked = str(select(runs.c.number).where(*conditions(wanted)).compile(dialect=dialect))
    assert "EXISTS (SELECT" in asked

"""The catalogue in each database that it can live in: SQLite's file, and a real PostgreSQL server of our own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import delete
from tests import postgres_server

from playhead.library import engine, text_index
from playhead.library.postgres import PostgresDatabase


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of a server that listens to nobody else."""
    # A language that sorts in another way than bytes do: nothing of ours may depend on it.
    with postgres_server.running("--locale-provider=icu", "--icu-locale=en") as (folder, _):
        yield f"postgresql+psycopg://playhead@/postgres?host={folder}"


@pytest.fixture(scope="session")
def server_database(server) -> Iterator[PostgresDatabase]:
    """Made once: tables take longer than most tests."""
    db = PostgresDatabase(Path("nowhere"), server)
    yield db
    db.close()


@pytest.fixture
def postgres(server_database, store) -> Iterator[PostgresDatabase]:
    """The catalogue of the store, empty."""
    with server_database.writing() as connection:
        for one in (*engine.metadata.sorted_tables, text_index.words):
            connection.execute(delete(one))
    server_database.home = store
    engine.use(store, server_database)
    yield server_database
    engine.use(store, None)


@pytest.fixture(params=["sqlite", "postgresql"])
def wherever(request) -> str:
    """What is asked for with this holds in every database."""
    if request.param == "postgresql":
        request.getfixturevalue("postgres")
    return request.param

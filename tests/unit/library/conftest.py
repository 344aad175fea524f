"""The catalogue in each database that it can live in: SQLite's file, and a real PostgreSQL server of our own."""

import os
import pwd
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import delete

from playhead.library import engine
from playhead.library import postgres as tsvector
from playhead.library.postgres import PostgresDatabase

# What Debian's server runs as; PostgreSQL refuses to be started by root.
OTHER_USER = "postgres"


def absent(reason: str) -> None:
    """On a developer's machine there need be no server; where all is to be proven there must."""
    if os.environ.get("CI"):
        pytest.fail(f"{reason} `apt-get install postgresql` brings one.")
    pytest.skip(reason)


def program(name: str) -> str:
    debian = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    found = shutil.which(name) or (str(debian[-1]) if debian else None)
    if found is None:
        absent(f"There is no PostgreSQL server here ({name}).")
    return str(found)


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of a server that listens to nobody else."""
    initdb, pg_ctl = program("initdb"), program("pg_ctl")
    version = subprocess.run([initdb, "--version"], capture_output=True, text=True, check=True)
    if int(re.search(r"\d+", version.stdout)[0]) < 15:
        absent("The PostgreSQL server here is older than 15.")
    # Not tmp_path: the name of a socket may have a hundred letters.
    folder = Path(tempfile.mkdtemp(prefix="playhead-pg-"))
    other: dict[str, str] = {}
    if os.geteuid() == 0:
        try:
            pwd.getpwnam(OTHER_USER)
        except KeyError:
            absent(f"There is no user {OTHER_USER} to run PostgreSQL.")
        shutil.chown(folder, OTHER_USER)
        other = {"user": OTHER_USER}

    def run(*argv: str) -> None:
        done = subprocess.run(
            argv, cwd=folder, capture_output=True, text=True, check=False, **other
        )
        assert done.returncode == 0, done.stderr

    data, log = str(folder / "data"), str(folder / "log")
    try:
        # A language that sorts in another way than bytes do: nothing of ours may depend on it.
        language = ("--locale-provider=icu", "--icu-locale=en")
        who = ("-A", "trust", "-U", "playhead")
        run(initdb, "-D", data, *who, "-E", "UTF8", "--no-sync", *language)
        # The user `locked` needs a password; every other one comes in without.
        rules = folder / "data" / "pg_hba.conf"
        rules.write_text(f"local all locked scram-sha-256\n{rules.read_text()}")
        options = f"-k {folder} -c listen_addresses='' -c fsync=off -c full_page_writes=off"
        run(pg_ctl, "-D", data, "-l", log, "-w", "-o", options, "start")
        try:
            yield f"postgresql+psycopg://playhead@/postgres?host={folder}"
        finally:
            run(pg_ctl, "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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
        for one in (*engine.metadata.sorted_tables, tsvector.words):
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

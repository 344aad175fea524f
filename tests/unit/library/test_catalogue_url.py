"""`[library] url`: every verb on PostgreSQL, consent, migrations, and a server that is away."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import create_engine, text

from playhead.cli import main
from playhead.errors import StoreError, UsageError
from playhead.library import engine
from playhead.library.catalogue_url import catalogue_url, masked, schema_of
from playhead.library.database import FILE
from playhead.library.postgres import VERSION, CatalogueUnavailable, PostgresDatabase
from playhead.testing import Reply, Usage


@pytest.fixture
def playhead(tmp_path, store, monkeypatch, capsys):
    """`playhead("list", "--json")` → code, out and err, with the folder of `forge` as the user's store."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PLAYHEAD_HOME", str(store))

    def run(*words):
        monkeypatch.setattr("sys.argv", ["playhead", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main()
        told = capsys.readouterr()
        return left.value.code, told.out, told.err

    yield run
    engine.use(store, None)


@pytest.fixture
def address(server, store, monkeypatch):
    """The server as a user names it."""
    url = server.replace("postgresql+psycopg://", "postgresql://")
    monkeypatch.setenv("PLAYHEAD_LIBRARY_URL", url)
    yield url
    engine.use(store, None)
    made = create_engine(server)
    with made.begin() as connection:
        connection.execute(text(f'DROP SCHEMA IF EXISTS "{schema_of(store)}" CASCADE'))
    made.dispose()


@pytest.fixture
def two(forge):
    for run, said in (("2026-apart", "the rate of the limit"), ("2026-together", "rate limit")):
        tape = forge(run, name=run, tags={"env": "ci"})
        tape.llm("claude-sonnet-4-5", Reply(text=said, usage=Usage(input=1000, output=10)))
        tape.tool("speak", {}, value=said)
        tape.end()


def ids(ended):
    code, out, err = ended
    assert code == 0, err
    return sorted(one["id"] for one in json.loads(out))


@pytest.mark.usefixtures("two", "address")
def test_every_verb_reads_the_catalogue_on_the_server(playhead, store):
    both = ["2026-apart", "2026-together"]
    assert ids(playhead("list", "--json", "--all")) == both
    assert ids(playhead("list", "--json", "--all", "--name", "*gether")) == both[1:]
    assert ids(playhead("list", "--json", "--all", "--tag", "env=ci", "--limit", "1")) == both[1:]
    first = json.loads(playhead("list", "--json", "--all")[1])[0]
    assert (first["llm_calls"], first["tool_calls"], first["tokens"]) == (1, 1, 1010)
    found = json.loads(playhead("search", '"rate limit"', "--all", "--json")[1])
    assert [one["id"] for one in found["runs"]] == both[1:]
    assert json.loads(playhead("stats", "--all", "--json")[1])["total"]["runs"] == 2
    assert playhead("tag", "2026-apart", "seen=yes")[0] == 0
    assert ids(playhead("list", "--json", "--all", "--tag", "seen")) == both[:1]
    assert playhead("rm", "2026-apart", "--yes")[0] == 0
    assert ids(playhead("list", "--json", "--all")) == both[1:]
    assert playhead("reindex")[1].startswith("Read 1 run")
    assert ids(playhead("list", "--json", "--all")) == both[1:]
    assert not (store / FILE).exists()


@pytest.mark.usefixtures("two", "address")
def test_last_is_the_newest_run_by_the_servers_rows(forge, playhead, tmp_path):
    newest = forge("2026-newest", project=str(tmp_path / "project"))
    newest.tool("speak", {}, value="the newest")
    newest.end()
    code, out, err = playhead("show", "last")
    assert code == 0, err
    assert "2026-newest" in out


@pytest.mark.usefixtures("address")
def test_more_runs_than_a_page_come_in_order_and_once(forge, playhead):
    for number in range(120):
        forge(f"run-{number:03}", started=1_790_000_000_000_000_000 + number).end()
    rows = json.loads(playhead("list", "--json", "--all", "--limit", "0")[1])
    assert [one["id"] for one in rows] == [f"run-{number:03}" for number in reversed(range(120))]


@pytest.mark.usefixtures("two")
def test_a_server_in_a_projects_file_gets_nothing_before_the_user_agrees(
    playhead, server, tmp_path, store
):
    url = server.replace("postgresql+psycopg://playhead@", "postgresql://playhead:hidden@")
    (tmp_path / "project" / "playhead.toml").write_text(f'[library]\nurl = "{url}"\n')
    for words in (["list"], ["search", "rate"], ["show", "last"]):
        code, _, err = playhead(*words)
        assert code == 2
        assert "with the text of all your runs" in err
        assert "playhead reindex --trust" in err
        assert "hidden" not in err
    assert "hidden" not in playhead("config")[1]
    assert playhead("reindex", "--trust")[0] == 0
    assert len(ids(playhead("list", "--json", "--all"))) == 2
    # Other folders have catalogues of their own.
    assert catalogue_url(tmp_path / "elsewhere") is None
    assert not (store / FILE).exists()


def test_stores_share_a_database_and_not_their_rows(server, tmp_path, forge):
    forge("2026-mine").end()
    schemas = [schema_of(tmp_path / name) for name in ("a", "b", "a")]
    assert schemas[0] == schemas[2] != schemas[1]
    first, second = (
        PostgresDatabase(tmp_path / name, server, schema)
        for name, schema in (("a", schemas[0]), ("b", schemas[1]))
    )
    with first.writing() as connection:
        connection.execute(engine.facts.insert(), {"name": "x", "value": "1"})
    with second.reading() as connection:
        assert connection.execute(engine.facts.select()).all() == []
    for db, schema in ((first, schemas[0]), (second, schemas[1])):
        with db.writing() as connection:
            connection.execute(text(f'DROP SCHEMA "{schema}" CASCADE'))
        db.close()


@pytest.fixture
def schema(server):
    name = "playhead_migrations"
    yield name
    made = create_engine(server)
    with made.begin() as connection:
        connection.execute(text(f"DROP SCHEMA IF EXISTS {name} CASCADE"))
    made.dispose()


def versions(db):
    with db.reading() as connection:
        return connection.execute(text("SELECT version FROM schema_version")).scalars().all()


def test_tables_of_an_older_version_are_migrated_and_keep_their_rows(server, schema, tmp_path):
    db = PostgresDatabase(tmp_path, server, schema)
    with db.writing() as connection:
        connection.execute(engine.facts.insert(), {"name": "x", "value": "kept"})
        connection.execute(text("DROP TABLE schema_version"))
        connection.execute(text("DROP INDEX runs_by_name"))
    db.close()
    again = PostgresDatabase(tmp_path, server, schema)
    assert versions(again) == [VERSION]
    with again.reading() as connection:
        assert connection.execute(text("SELECT value FROM facts")).scalar() == "kept"
        assert connection.execute(text("SELECT to_regclass('runs_by_name')")).scalar()
    again.close()


def test_tables_of_a_newer_version_are_left_alone(server, schema, tmp_path):
    db = PostgresDatabase(tmp_path, server, schema)
    with db.writing() as connection:
        connection.execute(text("UPDATE schema_version SET version = 99"))
    with pytest.raises(CatalogueUnavailable, match="made by a newer Playhead .version 99"):
        PostgresDatabase(tmp_path, server, schema)
    assert versions(db) == [99]
    db.close()


def test_many_that_come_first_make_the_tables_once(server, schema, tmp_path):
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: PostgresDatabase(tmp_path, server, schema), range(8)))
    assert versions(made[0]) == [VERSION]
    for db in made:
        db.close()


@pytest.mark.usefixtures("two")
def test_a_server_that_is_away_is_an_error_in_one_line_and_recording_goes_on(
    playhead, monkeypatch, store
):
    monkeypatch.setenv("PLAYHEAD_LIBRARY_URL", "postgresql://me:hidden@127.0.0.1:9/tapes")
    for words in (["list"], ["search", "rate"], ["stats"], ["reindex"], ["show", "last"]):
        code, _, err = playhead(*words)
        assert code == 1, words
        assert "cannot be reached" in err
        assert "Runs are still recorded" in err
        assert "hidden" not in err
        assert "Traceback" not in err
    # By its id a run is found without the catalogue.
    assert playhead("show", "2026-apart")[0] == 0
    # In a process of its own: recording leaves signals and descriptors as a command needs them.
    words = ["record", "--no-workspace", "--name", "meanwhile", "--", "true"]
    subprocess.run([sys.executable, "-m", "playhead", *words], check=True, capture_output=True)
    assert "recorded" not in playhead("list")[1]
    monkeypatch.delenv("PLAYHEAD_LIBRARY_URL")
    engine.use(store, None)
    names = {one["name"] for one in json.loads(playhead("list", "--json", "--all")[1])}
    assert "meanwhile" in names


@pytest.mark.usefixtures("two")
def test_a_wrong_password_and_a_missing_right_are_said(playhead, server, monkeypatch):
    made = create_engine(server)
    with made.begin() as connection:
        connection.execute(text("CREATE ROLE locked LOGIN PASSWORD 'right'"))
    for password, said in (
        ("wrong", "refuses the user or the password"),
        ("right", "Grant CREATE"),
    ):
        url = server.replace("postgresql+psycopg://playhead@", f"postgresql://locked:{password}@")
        monkeypatch.setenv("PLAYHEAD_LIBRARY_URL", url)
        code, _, err = playhead("list")
        assert code == 1
        assert said in err
        assert "Traceback" not in err
    with made.begin() as connection:
        connection.execute(text("DROP ROLE locked"))
    made.dispose()


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("wrong", ["mysql://x/y", "tapes.db", "postgresql:tapes"])
def test_what_is_no_address_of_a_server_is_named(playhead, monkeypatch, wrong):
    monkeypatch.setenv("PLAYHEAD_LIBRARY_URL", wrong)
    code, _, err = playhead("list")
    assert code == 2
    assert "expected postgresql://user@host/database" in err


def test_a_password_is_never_shown():
    assert masked("postgresql://me:secret@db:5432/x") == "postgresql://me:***@db:5432/x"
    assert masked("postgresql://me@db/x") == "postgresql://me@db/x"
    assert "secret" not in masked("postgresql://me:secret@[::1")


def test_a_server_without_its_tables_makes_them_again(server, schema, tmp_path):
    db = PostgresDatabase(tmp_path, server, schema)
    db.renew()
    assert versions(db) == [VERSION]
    db.close()


def test_errors_of_the_server_are_errors_of_the_store():
    assert issubclass(CatalogueUnavailable, StoreError)
    assert not issubclass(CatalogueUnavailable, UsageError)

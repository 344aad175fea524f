"""SQLite files are copied before a program can change them, and once more when the run ends."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from playhead.encoding.values import thaw
from playhead.hooks.state import sqlite_files
from playhead.hooks.state.sqlite_files import path_of


@pytest.fixture
def database(tmp_path) -> Path:
    path = tmp_path / "shop.db"
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("create table orders (item text)")
        connection.execute("insert into orders values ('cup')")
    connection.close()
    return path


@pytest.fixture
def unfinished_business(database):
    """Somebody's open connection, with rows that are not in the main file yet."""
    writer = sqlite3.connect(database, isolation_level=None)
    writer.execute("pragma journal_mode=wal")
    writer.execute("insert into orders values ('fork')")
    yield
    writer.close()


def add(database: Path, item: str) -> None:
    connection = sqlite3.connect(database)
    with connection:
        connection.execute("insert into orders values (?)", (item,))
    connection.close()


def restored(snapshot, folder: Path) -> list[str]:
    """The rows in a snapshot's files."""
    path = folder / f"{snapshot.data['when']}.db"
    for suffix, content in thaw(snapshot.data["value"]).items():
        Path(f"{path}{'' if suffix == 'main' else suffix}").write_bytes(content)
    connection = sqlite3.connect(path)
    rows = [item for (item,) in connection.execute("select item from orders")]
    connection.close()
    return rows


def test_a_file_is_snapshotted_when_it_is_opened_and_when_the_run_ends(
    hooks, database, taping, tmp_path
):
    hooks("state")
    add(database, "plate")
    add(database, "spoon")
    taping.end()
    start, end = taping.events("snapshot")
    assert start.data["path"] == str(database)
    assert restored(start, tmp_path) == ["cup"]
    assert restored(end, tmp_path) == ["cup", "plate", "spoon"]


def test_what_still_lies_in_the_write_ahead_log_is_part_of_the_snapshot(
    hooks, database, unfinished_business, taping, tmp_path
):
    hooks("state")
    sqlite3.connect(database).close()
    (start,) = taping.events("snapshot")
    assert set(start.data["value"]) == {"main", "-wal"}
    assert restored(start, tmp_path) == ["cup", "fork"]


def test_a_file_that_does_not_exist_yet_is_an_empty_snapshot(hooks, taping, tmp_path):
    hooks("state")
    sqlite3.connect(tmp_path / "new.db").close()
    (start,) = taping.events("snapshot")
    assert start.data["value"] == {}


def test_a_file_too_large_is_a_hole_with_its_size(hooks, database, taping, monkeypatch):
    monkeypatch.setattr(sqlite_files, "LARGEST", 100)
    hooks("state")
    add(database, "plate")
    (hole,) = taping.events("hole")
    assert "files up to 100 are copied" in hole.data["why"]
    assert taping.events("snapshot") == []


def test_databases_in_memory_and_our_own_are_not_looked_at(hooks, taping):
    hooks("state")
    sqlite3.connect(":memory:").close()
    sqlite3.connect("file:x?mode=memory", uri=True).close()
    sqlite3.connect(taping.run.parents[1] / "library.db").close()
    assert taping.events("snapshot") == []


def test_without_a_deck_nothing_happens(hooks, database):
    hooks("state")
    add(database, "plate")
    with contextlib.closing(sqlite3.connect(database)) as connection:
        assert connection.execute("select item from orders").fetchall() == [("cup",), ("plate",)]


def test_names_are_resolved_as_sqlite_does(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    here = str(tmp_path.resolve())
    assert path_of("a.db") == f"{here}/a.db"
    assert path_of(b"a.db") == f"{here}/a.db"
    assert path_of(Path("a.db")) == f"{here}/a.db"
    assert path_of("file:a%20b.db?mode=ro") == f"{here}/a b.db"
    assert path_of("file:///abs/c.db") == "/abs/c.db"
    assert path_of("") is None
    assert path_of(7) is None

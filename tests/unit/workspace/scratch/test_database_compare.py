"""Databases are compared by their rows, wherever SQLite keeps them."""

import sqlite3

from playhead.workspace.scratch.database_compare import same_rows, with_log


def test_rows_in_the_log_of_a_database_count_as_rows_of_the_database(tmp_path):
    path = tmp_path / "a.db"
    open_one = sqlite3.connect(path)
    open_one.execute("pragma journal_mode = wal")
    open_one.execute("create table t (n)")
    open_one.execute("insert into t values (1)")
    open_one.commit()
    database, log = path.read_bytes(), (tmp_path / "a.db-wal").read_bytes()
    open_one.close()  # moves the rows from the log to the database
    closed = path.read_bytes()
    assert not (tmp_path / "a.db-wal").exists()
    assert not same_rows(closed, database)
    assert same_rows(closed, with_log(database, log))
    assert with_log(closed, None) == closed

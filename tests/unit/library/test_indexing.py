import json
import multiprocessing
import os
import sqlite3
import threading

import pytest

from playhead import clock
from playhead.errors import StoreError
from playhead.library import database, indexing
from playhead.library.annotate import set_tags
from playhead.library.catalogue import Filter, Library
from playhead.library.indexing import reindex, update
from playhead.library.search import Search, one, query
from playhead.library.stats import stats
from playhead.tape.manifest import read_manifest
from playhead.testing import Reply, Usage


def ids(store, **wanted):
    return sorted(found.entry.id for found in query(store, Search(**wanted)).rows)


def some(forge, count):
    for number in range(count):
        tape = forge(f"run{number}")
        tape.tool("lookup", {"order": number}, value=f"parcel {number}")
        tape.end()


@pytest.mark.usefixtures("wherever")
def test_reindex_reads_every_run_and_tells_how_far_it_is(forge, store):
    some(forge, 3)
    told = []
    assert reindex(store, progress=lambda done, total: told.append((done, total))) == 3
    assert told[-1] == (3, 3)
    assert ids(store, text="parcel") == ["run0", "run1", "run2"]


def test_reindex_puts_right_whatever_the_catalogue_says(forge, store):
    some(forge, 3)
    assert len(ids(store, text="parcel")) == 3
    with sqlite3.connect(store / database.FILE) as db:
        db.execute("UPDATE runs SET name = 'wrong', cost_usd = 77, state = 'x'")
        db.execute("DELETE FROM texts")
        db.execute("DELETE FROM runs WHERE id = 'run1'")
        db.execute("INSERT INTO calls VALUES (1, 'tool', 'ghost', 0, 1, 0, NULL, NULL, NULL)")
    db.close()
    reindex(store)
    assert ids(store, text="parcel") == ["run0", "run1", "run2"]
    assert ids(store, name="wrong") == []
    assert [group.key for group in stats(store, by="tool").groups] == ["lookup"]


@pytest.mark.usefixtures("wherever")
def test_a_new_price_counts_for_all_runs_after_a_reindex(forge, store):
    tape = forge()
    tape.llm("hello", Reply(text="hi", usage=Usage(input=1_000_000, output=0)))
    tape.end()
    update(store, prices={})
    assert stats(store, prices={}).total.cost_usd != pytest.approx(7.0)
    dear = {"claude-*": {"input": 7.0, "output": 1.0}}
    reindex(store, prices=dear)
    assert stats(store, prices=dear).total.cost_usd == pytest.approx(7.0)


@pytest.mark.parametrize("damage", ["deleted", "garbage", "torn", "tables gone", "older"])
def test_a_catalogue_that_is_no_more_comes_back_by_itself(forge, store, damage):
    some(forge, 20)
    assert len(ids(store, text="parcel")) == 20
    path = store / database.FILE
    if damage == "deleted":
        path.unlink()
    elif damage == "garbage":
        path.write_bytes(b"no database at all" * 1000)
    elif damage == "torn":
        with sqlite3.connect(path) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()
        raw = path.read_bytes()
        path.write_bytes(raw[:8192] + b"\xff" * (len(raw) - 8192))
    else:
        with sqlite3.connect(path) as db:
            db.execute("DROP TABLE calls" if damage == "tables gone" else "PRAGMA user_version = 1")
        db.close()
    assert len(ids(store, text="parcel")) == 20
    assert len(list(Library(store).entries(Filter()))) == 20


def test_a_catalogue_that_cannot_be_written_is_done_without(forge, store):
    some(forge, 2)
    (store / database.FILE).mkdir()
    assert ids(store, text="parcel") == ["run0", "run1"]
    assert ids(store, text="parcel") == ["run0", "run1"]
    assert stats(store, by="tool").total.runs == 2


def test_the_short_way_and_the_long_way_keep_the_same_rows(forge, store):
    some(forge, 2)
    short = [entry.manifest for entry in Library(store).entries(Filter())]
    assert [found.entry.manifest for found in query(store, Search()).rows] == short
    forge("later", tags={"env": "ci"}).end()
    assert ids(store, tags=(("env", "ci"),)) == ["later"]
    assert [one.id for one in Library(store).entries(Filter(tags=(("env", "ci"),)))] == ["later"]
    set_tags(store, "later", {"env": "prod"})
    assert [one.id for one in Library(store).entries(Filter(tags=(("env", "prod"),)))] == ["later"]
    assert ids(store, tags=(("env", "prod"),)) == ["later"]
    assert ids(store, text="prod") == ["later"]


@pytest.mark.usefixtures("wherever")
def test_only_runs_that_are_new_or_spoken_of_are_looked_at(forge, store, monkeypatch):
    some(forge, 3)
    update(store)
    looked = []
    real = read_manifest
    monkeypatch.setattr(
        "playhead.library.shelf.read_manifest", lambda run: looked.append(run.name) or real(run)
    )
    update(store)
    assert looked == []
    set_tags(store, "run1", {"a": "b"})
    update(store)
    assert looked == ["run1"]
    forge("new").end()
    update(store)
    assert looked == ["run1", "new"]
    assert list((store / "changed").iterdir()) == []


@pytest.mark.usefixtures("wherever")
def test_a_tape_that_cannot_be_read_is_a_run_all_the_same(forge, store):
    some(forge, 1)
    bad = forge("bad").end()
    (bad / "manifest.json").write_text("{")
    (bad / "tape-4194999.jsonl").write_bytes(b"\xff\xfe" * 100)
    assert ids(store) == ["bad", "run0"]
    assert ids(store, text="parcel") == ["run0"]
    assert "cannot be read" in one(store, "bad").entry.problem


def test_long_texts_are_read_up_to_a_limit_and_every_message_once(forge, store):
    tape = forge()
    for _ in range(3):
        tape.tool("echo", {"text": "owl " * 100_000})
    tape.tool("last", {"bird": "pelican"})
    tape.end()
    assert ids(store, text="owl") == ["20261115-071105-k3f9"]
    assert ids(store, text="pelican") == []
    with sqlite3.connect(store / database.FILE) as db:
        (size,) = db.execute("SELECT length(tool) FROM texts").fetchone()
    db.close()
    assert size <= 128 * 1024


def work(store, number, out):
    try:
        for turn in range(4):
            set_tags(store, f"run{number}", {"turn": str(turn)})
            query(store, Search(text="parcel"))
            list(Library(store).entries(Filter()))
            update(store)
        out.put((number, query(store, Search()).total, None))
    except BaseException as error:
        out.put((number, 0, repr(error)))
        raise


def test_many_processes_write_and_read_at_the_same_time(forge, store):
    some(forge, 6)
    spawn = multiprocessing.get_context("fork")
    out = spawn.SimpleQueue()
    children = [spawn.Process(target=work, args=(store, number, out)) for number in range(4)]
    for child in children:
        child.start()
    told = [out.get() for _ in children]
    for child in children:
        child.join()
    assert sorted(told) == [(number, 6, None) for number in range(4)]
    assert ids(store, tags=(("turn", "3"),)) == ["run0", "run1", "run2", "run3"]
    with sqlite3.connect(store / database.FILE) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        (texts,) = db.execute("SELECT count(*) FROM texts").fetchone()
    db.close()
    assert texts == 6


def test_the_manifest_in_the_catalogue_is_the_one_in_the_folder(forge, store):
    path = forge("run", tags={"env": "ci"}, extra={"mood": "fine"}).end()
    update(store)
    with sqlite3.connect(store / database.FILE) as db:
        ((raw,),) = db.execute("SELECT manifest FROM documents").fetchall()
    db.close()
    assert json.loads(raw)["mood"] == "fine"
    assert one(store, "run").entry.manifest == read_manifest(path)


@pytest.mark.usefixtures("wherever")
def test_many_threads_that_look_at_a_growing_run_see_it_grow(forge, store):
    some(forge, 2)
    tape = forge("alive", pid=clock.pid())
    begun, failed = threading.Barrier(5), []

    def look():
        begun.wait()
        try:
            for _ in range(4):
                query(store, Search(text="parcel", sort="-cost"), prices={})
                one(store, "alive", prices={})
        except BaseException as error:  # noqa: BLE001  told by the test
            failed.append(error)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    begun.wait()
    for number in range(20):
        tape.tool("lookup", {"order": number}, value="parcel")
    for thread in threads:
        thread.join()
    assert failed == []
    assert one(store, "alive").summary.calls == 20
    assert ids(store, text="parcel") == ["alive", "run0", "run1"]


def die_half_way(store):
    reindex(store, progress=lambda done, _: os.kill(os.getpid(), 9) if done == 4 else None)


def test_a_reindex_that_is_killed_half_way_is_finished_by_the_next_look(forge, store, monkeypatch):
    monkeypatch.setattr("playhead.library.indexing._AT_ONCE", 2)
    some(forge, 8)
    child = multiprocessing.get_context("fork").Process(target=die_half_way, args=(store,))
    child.start()
    child.join()
    assert child.exitcode == -9
    assert len(list(Library(store).entries(Filter()))) == 8
    assert len(ids(store, text="parcel")) == 8
    assert stats(store, by="tool").groups[0].calls == 8


@pytest.mark.usefixtures("wherever")
def test_a_reindex_that_is_stopped_is_finished_by_the_next_look(forge, store, monkeypatch):
    monkeypatch.setattr("playhead.library.indexing._AT_ONCE", 2)
    some(forge, 6)
    assert len(ids(store, text="parcel")) == 6

    def stop(done, _):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reindex(store, progress=stop)
    assert len(ids(store, text="parcel")) == 6


@pytest.mark.usefixtures("wherever")
def test_a_long_tape_that_grows_is_not_read_for_everybody_who_looks(forge, store, monkeypatch):
    tape = forge("alive", pid=clock.pid())
    tape.tool("lookup", {})
    monkeypatch.setattr("playhead.library.indexing._Pace._LONG_NS", -1)
    monkeypatch.setattr("playhead.library.indexing._Pace._REST", 10**9)
    assert one(store, "alive").summary.calls == 1
    tape.tool("lookup", {})
    assert one(store, "alive").summary.calls == 1
    monkeypatch.setattr("playhead.library.indexing._pace", type(indexing._pace)())
    assert one(store, "alive").summary.calls == 2


def test_a_catalogue_that_somebody_else_writes_to_is_read_as_it_is(forge, store, monkeypatch):
    monkeypatch.setattr("playhead.library.database.PATIENCE_S", 0.1)
    forge("one").end()
    assert ids(store) == ["one"]
    forge("two").end()
    other = sqlite3.connect(store / "library.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        assert ids(store) == ["one"]
        with pytest.raises(StoreError, match="locked"):
            reindex(store)
    finally:
        other.close()
    assert ids(store) == ["one", "two"]

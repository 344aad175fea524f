import dataclasses
import sqlite3

import pytest

from playhead import clock
from playhead.library.catalogue import Filter, Library, entries, entry_at
from playhead.library.database import FILE
from playhead.library.run_rows import Summary, stamp_of
from playhead.tape.manifest import read_manifest, write_manifest
from playhead.tape.store import announce


def ids(store, **wanted):
    return [entry.id for entry in entries(store, Filter(**wanted))]


def test_an_entry_has_the_manifest_as_it_stands_in_the_run(forge, store):
    path = forge(tags={"env": "ci"}, git_commit="abc", keep=True).end()
    (entry,) = entries(store, Filter())
    assert entry.manifest == read_manifest(path)
    assert entry == entry_at(path)


def test_members_that_a_later_version_wrote_are_not_lost_on_the_way(forge, store):
    path = forge().end()
    write_manifest(path, dataclasses.replace(read_manifest(path), extra={"mood": "fine"}))
    (entry,) = entries(store, Filter())
    assert entry.manifest.extra == {"mood": "fine"}


def test_what_is_not_asked_for_is_not_decoded(forge, store, monkeypatch):
    for number in range(5):
        forge(f"run{number}").end()
    ids(store)
    decoded = []
    real = Library.entries
    monkeypatch.setattr("playhead.library.catalogue.decode_entry", lambda *a: decoded.append(a))
    found = real(Library(store), Filter())
    next(found)
    next(found)
    assert len(decoded) == 2


def test_replays_can_be_left_out(forge, store):
    forge("first").end()
    forge("again", replay_of="first").end()
    assert sorted(ids(store)) == ["again", "first"]
    assert ids(store, replays=False) == ["first"]


def test_runs_that_were_moved_aside_are_not_listed(forge, store):
    forge("nightly").end()
    (store / "runs" / "nightly").rename(store / "runs" / "nightly.old.20261115T071105")
    assert ids(store) == []


def test_a_manifest_that_was_replaced_is_seen_where_somebody_left_word(forge, store):
    path = forge("run").end()
    assert ids(store, name="renamed") == []
    write_manifest(path, dataclasses.replace(read_manifest(path), name="renamed"))
    announce(path)
    assert ids(store, name="renamed") == ["run"]


def test_a_library_of_another_version_is_made_anew(forge, store):
    forge("run").end()
    assert ids(store) == ["run"]
    with sqlite3.connect(store / FILE) as db:
        db.execute("PRAGMA user_version = 999")
        db.execute("UPDATE runs SET name = 'from the future'")
    db.close()
    assert ids(store, name="refund-agent") == ["run"]


def test_a_library_that_is_locked_does_not_keep_anybody_from_listing(forge, store):
    forge("one").end()
    assert ids(store) == ["one"]
    forge("two").end()
    other = sqlite3.connect(store / FILE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        assert sorted(ids(store)) == ["one", "two"]
    finally:
        other.close()


def test_the_library_is_for_its_owner_alone(forge, store):
    forge().end()
    library = Library(store)
    list(library.entries(Filter()))
    files = sorted(store.glob(f"{FILE}*"))
    assert len(files) == 3
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


@pytest.fixture
def summarised(forge, store):
    tape = forge(pid=clock.pid())
    library = Library(store)
    (entry,) = library.entries(Filter())
    stamp = stamp_of(entry.path, "prices")
    library.keep_summaries({entry.id: (stamp, Summary(calls=7, failure="é\ud800"))})
    return tape, entry


def test_a_summary_is_remembered_for_the_very_state_it_was_made_of(summarised, store):
    tape, entry = summarised
    stamp = stamp_of(entry.path, "prices")
    assert Library(store).summary(entry, stamp).calls == 7
    tape.event("plan:made")
    assert Library(store).summary(entry, stamp_of(entry.path, "prices")) is None
    assert Library(store).summary(entry, stamp_of(entry.path, "other prices")) is None


def test_a_summary_goes_with_the_manifest_that_it_was_made_of(summarised, store):
    tape, entry = summarised
    tape.end()
    assert Library(store).summary(entry, stamp_of(entry.path, "prices")) is None

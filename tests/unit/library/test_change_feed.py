"""Who asks while the catalogue is being made gets what is there, and is told that it is not all."""

import threading

import pytest

from playhead.library import catalogue as looking
from playhead.library.catalogue import Filter, Library
from playhead.library.change_feed import BackgroundIndex, Backlog
from playhead.library.indexing import Reader, update
from playhead.library.search import Search, query
from playhead.library.stats import stats

PARCEL = Search(text="parcel")


@pytest.fixture
def six(forge):
    for number in range(6):
        tape = forge(f"20261115-07110{number}-aaaa", started=number * 10**9)
        tape.tool("lookup", {"order": number}, value=f"parcel {number}")
        tape.end()


@pytest.fixture
def held(monkeypatch):
    """Only four runs are read before `held.set()`, two in each transaction."""
    monkeypatch.setattr("playhead.library.indexing._AT_ONCE", 2)
    let_go = threading.Event()
    read, real = [], Reader.read

    def reading(self, run_id, manifest=None):
        read.append(run_id)
        assert len(read) <= 4 or let_go.wait(60)
        return real(self, run_id, manifest)

    monkeypatch.setattr(Reader, "read", reading)
    yield let_go
    let_go.set()


def found(store, **how):
    return [one.entry.id[-6] for one in query(store, PARCEL, **how).rows]


def test_a_search_finds_the_newest_runs_before_all_are_read(six, store, held):
    catching_up = BackgroundIndex(store, patience_s=0.05)
    while catching_up.wait(read=True) != Backlog(done=4, of=6):
        assert not held.is_set()
    assert found(store, updated=True, complete=False) == ["5", "4", "3", "2"]
    assert stats(store, by="tool", updated=True).groups[0].calls == 4
    # A list does not wait for tapes that are read for a search.
    assert BackgroundIndex(store, patience_s=60).wait(read=False) is None
    assert query(store, Search(), updated=True, complete=False).total == 6
    held.set()
    assert BackgroundIndex(store, patience_s=60).wait(read=True) is None
    assert len(found(store, updated=True)) == 6


def test_what_was_there_before_the_question_is_in_the_answer(forge, store):
    catching_up = BackgroundIndex(store, patience_s=60)
    for number in range(3):
        forge(f"run{number}").end()
        assert catching_up.wait(read=True) is None
        assert query(store, Search(), updated=True).total == number + 1


def test_a_store_that_cannot_be_read_says_so_to_who_waits(six, store, monkeypatch):
    def broken(*_):
        raise OSError("the disk is gone")

    monkeypatch.setattr(Reader, "read", broken)
    with pytest.raises(OSError, match="the disk is gone"):
        BackgroundIndex(store, patience_s=60).wait(read=True)


def test_a_first_look_tells_how_far_it_is_and_keeps_the_newest_first(six, store, monkeypatch):
    monkeypatch.setattr(looking, "_AT_ONCE", 2)
    monkeypatch.setattr(looking, "_TOLD_EVERY", 1)
    told = []

    def stop_half_way(done, of):
        told.append((done, of))
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        update(store, progress=stop_half_way, read=False)
    assert told == [(1, 6), (2, 6), (3, 6), (4, 6), (5, 6)]
    assert query(store, Search(), updated=True, complete=False).total == 4
    assert [entry.id[-6] for entry in Library(store).entries(Filter())] == list("543210")

"""Methods of C types can be replaced and put back, and nobody else notices."""

import _thread
import array
import datetime
import threading

import pytest

from playhead.hooks.guest import NotAsExpected, Patches
from playhead.hooks.replacements import graft


@pytest.fixture
def patches():
    made = Patches()
    yield made
    made.undo()


def test_a_method_of_a_c_type_is_replaced_for_all_and_put_back(patches):
    original = vars(array.array)["tolist"]
    instance = array.array("i", [1, 2])
    graft(patches, array.array, "tolist", lambda self: "grafted")
    assert instance.tolist() == "grafted"
    patches.undo()
    assert instance.tolist() == [1, 2]
    assert vars(array.array)["tolist"] is original


def test_code_that_ran_hot_before_sees_the_new_method_and_then_the_old(patches):
    def hot():
        return datetime.datetime.now()  # noqa: DTZ005  the method itself is meant

    for _ in range(2000):
        hot()
    graft(patches, datetime.datetime, "now", classmethod(lambda cls: cls))
    assert hot() is datetime.datetime
    patches.undo()
    assert isinstance(hot(), datetime.datetime)


def test_subclasses_that_are_there_see_it_too(patches):
    class Moment(datetime.datetime):
        pass

    graft(patches, datetime.datetime, "now", classmethod(lambda cls: cls.__name__))
    assert Moment.now() == "Moment"


def test_a_with_statement_finds_it(patches):
    entered = []
    kind = type(_thread.allocate_lock())
    take = kind.acquire

    def enter(self):
        entered.append(True)
        return take(self)

    graft(patches, kind, "__enter__", enter)
    lock = threading.Lock()
    with lock:
        assert lock.locked()
    patches.undo()
    assert entered


def test_a_type_stays_as_concrete_as_it_was(patches):
    graft(patches, datetime.date, "today", classmethod(lambda cls: None))
    assert datetime.date(2026, 1, 1)
    assert not hasattr(datetime.date, "__abstractmethods__")


def test_what_is_not_there_is_said(patches):
    with pytest.raises(NotAsExpected, match="has no fetch"):
        graft(patches, datetime.date, "fetch", None)


def test_somebody_else_s_graft_on_top_of_ours_is_left_to_him(patches):
    original = vars(array.array)["tolist"]
    graft(patches, array.array, "tolist", lambda self: "ours")
    graft(Patches(), array.array, "tolist", lambda self: "theirs")
    patches.undo()
    assert array.array("i").tolist() == "theirs"
    graft(Patches(), array.array, "tolist", original)

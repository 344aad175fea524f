"""A tape gives exceptions back as data: no import, no __init__, no class that is no exception."""

import sys

from playhead.encoding.values import freeze
from playhead.replay.matching.taped import TapedError, rebuild


class Counted(Exception):
    made = 0

    def __init__(self, *args):
        super().__init__(*args)
        type(self).made += 1


def test_a_builtin_exception_comes_back_with_its_arguments():
    error = rebuild(freeze(KeyError("x", 1)))
    assert type(error) is KeyError
    assert error.args == ("x", 1)


def test_a_class_of_a_loaded_module_comes_back_without_running_its_init():
    frozen = freeze(Counted("a"))
    before = Counted.made
    error = rebuild(frozen)
    assert type(error) is Counted
    assert Counted.made == before


def test_a_class_of_a_module_that_is_not_loaded_is_not_imported_for_it():
    error = rebuild({"$exception": "this:Poem", "message": "beautiful", "args": []})
    assert isinstance(error, TapedError)
    assert "Poem: beautiful" in str(error)
    assert "this" not in sys.modules


def test_a_name_that_is_no_exception_is_not_made():
    error = rebuild({"$exception": "subprocess:Popen", "message": "", "args": [["true"]]})
    assert isinstance(error, TapedError)


def test_a_cause_comes_back_as_the_cause():
    outer = RuntimeError("outer")
    outer.__cause__ = ValueError("inner")
    assert isinstance(rebuild(freeze(outer)).__cause__, ValueError)

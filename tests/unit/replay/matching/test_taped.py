"""A tape gives exceptions back as data: no import, no __init__, no class that is no exception."""

import sys

from playhead import config
from playhead.encoding.values import freeze
from playhead.launch import record_run as recording
from playhead.launch.opening import Wish
from playhead.recording import deck
from playhead.recording.adapter import FunctionAdapter
from playhead.recording.calls import Call
from playhead.replay.matching.taped import load
from playhead.replay.matching.taped_errors import TapedError, rebuild
from playhead.tape.reader import Tape


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


def test_requests_of_an_mcp_connection_are_below_the_call_that_opened_it(tmp_path):
    run = recording.open_run(Wish(store=tmp_path), config.load(), '"test"')
    for boundary, url in (
        ("http", "http://shop/mcp"),
        ("mcp", "http://shop/mcp"),
        ("http", "http://shop/mcp"),
        ("http", "http://shop/other"),
    ):
        call = Call(boundary=boundary, name=boundary, request={"url": url})
        deck.declared().perform(call, FunctionAdapter(lambda: None))
    recording.finish(run, None)
    tape = load(Tape(run.path))
    assert tape.below == {tape.calls[1].ref: [tape.calls[2]]}

"""Facts that several views show: they must agree."""

import re

import pytest

from playhead.story import tell
from playhead.tape.reader import Tape
from playhead.views.play.frames import frames_of
from playhead.views.text import words
from playhead.views.tui.run_lines import TreeRows, item_lines
from playhead.views.web.outline import outline


def test_play_show_and_the_page_put_a_call_at_the_same_time(forge, playhead, store):
    tape = forge()
    tape.now = 2.0
    tape.event("hook", {"name": "httpx"})
    tape.now = 5.0
    tape.tool("lookup", {"n": 1}, value=2)
    tape.now = 8.0
    tape.tool("lookup", {"n": 2}, value=3)
    story = tell(Tape(tape.end()))
    # The clock starts with the first call, not with the hook before it.
    _, call = story.calls()
    (begun,) = [one for one in frames_of(story) if one.item is call and one.part == "begin"]
    page = outline(story)
    at_us = page["columns"]["at"][page["refs"].index(call.ref)]
    said = playhead("show", "--store", store, "last", "--call", "2").out
    (shown,) = re.findall(r"(\S+) into the run", said)
    in_tui = " ".join(line.plain for line in item_lines(story, call, 100))
    assert words.position(begun.at_ns) == words.position(at_us * 1000) == shown == "00:03.0"
    assert f"{shown} into the run" in in_tui


def test_the_pause_before_a_resumed_run_is_cut_out_of_every_clock(forge):
    tape = forge()
    tape.now = 1.0
    tape.tool("first", {}, value=1, took=1.0)
    tape.now = 90_000.0
    tape.event("run.start", {"run": "x", "name": "x", "resumed": True})
    tape.tool("second", {}, value=1)
    story = tell(Tape(tape.end()))
    second = story.call(2)
    (begun,) = [one for one in frames_of(story) if one.item is second and one.part == "begin"]
    page = outline(story)
    at_us = page["columns"]["at"][page["refs"].index(second.ref)]
    in_tui = " ".join(line.plain for line in item_lines(story, second, 100))
    assert begun.at_ns == at_us * 1000 == 1_000_000_000
    assert "00:01.0 into the run" in in_tui


def nested_failure_before_a_sibling(tape):
    """In the tree the inner call is below the outer one; in time it failed later than a call of another lane."""
    outer = tape.call("tool", "outer", {}, lane="main")
    tape.now = 1.0
    other = tape.call("tool", "other", {}, lane="task-2")
    tape.now = 2.0
    inner = tape.call("http", "inner", {}, parent=outer)
    tape.now = 3.0
    tape.outcome(inner, "raised", error={"$exception": "builtins:OSError", "message": "no"})
    tape.outcome(other, "raised", error={"$exception": "builtins:KeyError", "message": "x"})
    tape.outcome(outer, value=1)
    return ["other", "inner"]


def never_answered(tape):
    tape.tool("fine", {}, value=1)
    tape.call("http", "hangs", {})
    return ["hangs"]


def only_a_turn(tape):
    turn = tape.turn("reply")
    tape.tool("fine", {}, value=1, parent=turn)
    tape.turn_end(turn, error=ValueError("no"))
    return ["reply"]


def two_in_one_moment(tape):
    first = tape.call("tool", "one", {})
    second = tape.call("tool", "two", {}, lane="task-2")
    for call in (first, second):
        tape.outcome(call, "raised", error={"$exception": "builtins:OSError", "message": "no"})
    return ["one", "two"]


@pytest.mark.parametrize(
    "happens", [nested_failure_before_a_sibling, never_answered, only_a_turn, two_in_one_moment]
)
def test_page_and_tui_go_through_the_same_failures_in_the_same_order(forge, happens):
    tape = forge()
    names = happens(tape)
    story = tell(Tape(tape.end("failed")))
    rows = TreeRows(story)
    rows.fit(100)
    visited, at = [], -1
    for _ in names:
        at = rows.next_failure(at)
        visited.append(rows.item(at).ref)
    assert visited == outline(story)["failures"]
    assert [story.items[ref].name for ref in visited] == names
    assert rows.item(rows.next_failure(at)).ref == visited[0]

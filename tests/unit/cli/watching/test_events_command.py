import json
import subprocess
import sys

import pytest

from playhead import clock
from playhead.testing import Reply


@pytest.fixture
def tape(forge):
    tape = forge()
    turn = tape.turn("act")
    tape.llm("hello", Reply(text="hi"), parent=turn, lane="main/1")
    tape.tool("lookup", {"n": 1}, parent=turn, lane="main/2")
    tape.event("plan:made", {"steps": 3}, user=True)
    tape.turn_end(turn)
    tape.end()
    return tape


def lines(ended):
    assert ended.code == 0, ended.err
    return [json.loads(line) for line in ended.out.splitlines()]


def test_lines_come_byte_for_byte_in_order(tape, store, playhead):
    assert playhead("events", "last", "--store", store).out == tape.file.read_text()


def test_a_sealed_run_gives_the_same_lines(tape, store, playhead):
    raw = tape.file.read_text()
    assert playhead("seal", "last", "--store", store).code == 0
    assert not tape.file.exists()
    assert playhead("events", "last", "--store", store).out == raw


def test_kinds_of_a_later_version_and_strange_members_survive(forge, store, playhead):
    tape = forge()
    tape.event("hologram", {"depth": 3})
    tape.end()
    raw = tape.file.read_text()
    assert playhead("events", "last", "--kind", "hologram", "--store", store).out in raw


@pytest.mark.parametrize(
    ("asked", "kinds"),
    [
        (["--kind", "turn.*"], ["turn.start", "turn.end"]),
        (["--kind", "call", "--kind", "plan:*"], ["call", "call", "plan:made"]),
        (["--boundary", "tool"], ["call", "outcome"]),
        (["--lane", "main/2"], ["call"]),
        (["--kind", "call", "--boundary", "llm"], ["call"]),
        (["--limit", "2"], ["segment.start", "run.start"]),
        (["--seq", "1..2"], ["run.start", "turn.start"]),
        (["--seq", "2"], ["turn.start"]),
        (["--seq", "..0"], ["segment.start"]),
        (["--seq", "4194999:2..2"], ["turn.start"]),
        (["--seq", "1:0.."], []),
    ],
)
def test_a_selection_takes_what_is_asked_for(tape, store, playhead, asked, kinds):
    found = lines(playhead("events", "last", "--store", store, *asked))
    assert [event["kind"] for event in found] == kinds


def test_chunks_and_outcomes_go_with_their_call(tape, store, playhead):
    found = lines(playhead("events", "last", "--boundary", "llm", "--store", store))
    assert {event["kind"] for event in found} == {"call", "chunk", "outcome"}
    assert len(found) > 5


def test_pretty_lines_say_when_where_and_what(tape, store, playhead):
    out = playhead("events", "last", "--pretty", "--store", store).out
    assert "00:00.0    4194999:2 turn.start    act" in out
    assert "lookup(n=1)" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("seq", ["a..b", "..", "", "1:2..3:4", "-1"])
def test_a_range_that_is_none_is_a_usage_error(tape, store, playhead, seq):
    ended = playhead("events", "last", f"--seq={seq}", "--store", store)
    assert ended.code == 2
    assert "Traceback" not in ended.err


def test_a_damaged_line_is_named_and_the_others_are_given(tape, store, playhead):
    raw = tape.file.read_bytes().splitlines(keepends=True)
    raw[2] = b"garbage\n"
    tape.file.write_bytes(b"".join(raw))
    ended = playhead("events", "last", "--store", store)
    assert ended.code == 0
    assert len(ended.out.splitlines()) == len(raw) - 1
    assert "4194999 line 3" in ended.err


def test_follow_goes_on_with_a_run_until_it_ends(forge, store):
    tape = forge(pid=clock.pid())
    argv = [sys.executable, "-m", "playhead", "events", "last", "--follow", "--store", str(store)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as running:
        assert json.loads(running.stdout.readline())["kind"] == "segment.start"
        assert json.loads(running.stdout.readline())["kind"] == "run.start"
        tape.event("plan:made", {"steps": 3})
        assert json.loads(running.stdout.readline())["data"] == {"steps": 3}
        tape.end()
        rest = [json.loads(line)["kind"] for line in running.stdout]
        assert running.wait() == 0
    assert rest == ["run.end", "segment.end"]

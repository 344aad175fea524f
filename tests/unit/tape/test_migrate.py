"""Tapes of older formats are read as if they had been written today."""

import pytest

from playhead.errors import TapeError
from playhead.tape import format as tape_format
from playhead.tape.care.verify import verify
from playhead.tape.format import FORMAT_VERSION, can_migrate, migrate
from playhead.tape.reader import Tape
from playhead.tape.sealed.seal import seal


def renamed(members):
    """A made-up step: format 0 called `kind` `type`, and `data` `payload`."""
    members = dict(members)
    members["kind"] = members.pop("type", members.get("kind"))
    members["data"] = members.pop("payload", members.get("data"))
    return members


@pytest.fixture
def format_0(monkeypatch):
    monkeypatch.setitem(tape_format.STEPS, 0, renamed)


def test_there_is_a_step_from_every_older_format():
    assert set(tape_format.STEPS) == set(range(1, FORMAT_VERSION))


def test_steps_are_taken_one_after_the_other():
    steps = {1: lambda m: {**m, "a": 1}, 2: lambda m: {**m, "b": m["a"] + 1}}
    assert migrate({}, 1, steps, to=3) == {"a": 1, "b": 2}
    assert migrate({}, 3, steps, to=3) == {}


def test_a_missing_step_is_said():
    with pytest.raises(TapeError, match="cannot migrate format 2 to 3"):
        migrate({}, 1, {1: dict}, to=3)
    assert not can_migrate(1, {1: dict}, to=3)
    assert not can_migrate(-(10**18))
    assert not can_migrate(FORMAT_VERSION + 1)


@pytest.mark.parametrize("sealed", [False, True])
def test_a_segment_of_an_older_format_is_migrated_line_by_line(run, format_0, sealed):
    old, new = run.segment("100", format=0), run.segment("101")
    line = old.add("ignored", type="note", payload={"a": 1})
    new.add("note", {"a": 2})
    for segment in (old, new):
        segment.end()
    run.manifest()
    if sealed:
        seal(run.path)
    tape = Tape(run.path)
    notes = {event.pid: event.data for event in tape.events() if event.kind == "note"}
    assert notes == {100: {"a": 1}, 101: {"a": 2}}
    assert tape.event("100:1").data == {"a": 1}
    assert line.rstrip(b"\n") in [one.raw for one in tape.lines()]  # the disk stays as it is
    assert verify(run.path).ok


def test_a_step_that_fails_is_a_damaged_line_and_no_crash(run, monkeypatch):
    monkeypatch.setitem(tape_format.STEPS, 0, lambda members: {**members, "kind": members["nope"]})
    run.segment("100", format=0).add("x")
    tape = Tape(run.path)
    assert list(tape.events()) == []
    assert "not an event of format 0" in tape.damage[0].why

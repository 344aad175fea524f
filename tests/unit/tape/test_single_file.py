"""A tape as one file: nothing of the machine in it, nothing of the run lost."""

import json

import pytest

import playhead
from playhead.errors import TapeDamaged, TapeTooNew
from playhead.recording.adapter import FunctionAdapter
from playhead.recording.deck import Call, Deck
from playhead.replay.matching.taped import load
from playhead.story import tell
from playhead.tape.care.verify import verify
from playhead.tape.reader import Tape
from playhead.tape.single_file import pack, unpack


@pytest.fixture
def run(tmp_path):
    with playhead.record(name="refund", store=tmp_path / "store") as run:
        deck = Deck(run.recorder)
        with run.turn("respond") as turn:
            turn.seam("look")
            deck.perform(
                Call(boundary="tool", name="big", request={"arguments": {}}),
                FunctionAdapter(lambda: "x" * 100_000),
            )
        run.emit("pod:recalled", {"n": 1})
    return run


def test_a_run_that_was_packed_and_unpacked_tells_the_same_story(run, tmp_path):
    pack(run.path, tmp_path / "a.tape.jsonl")
    back = unpack(tmp_path / "a.tape.jsonl", tmp_path / "back")
    then, now = tell(Tape(run.path)), tell(Tape(back))
    assert [type(item).__name__ for item in now.items.values()] == [
        type(i).__name__ for i in then.items.values()
    ]
    assert now.calls()[0].value == then.calls()[0].value
    assert now.turns()[0].last_seam == "look"
    assert load(Tape(back)).calls[0].request == load(Tape(run.path)).calls[0].request


def test_an_unpacked_tape_verifies(run, tmp_path):
    pack(run.path, tmp_path / "a.tape.jsonl")
    assert verify(unpack(tmp_path / "a.tape.jsonl", tmp_path / "back")).damages == []


def test_packing_twice_gives_the_same_bytes(run, tmp_path):
    pack(run.path, tmp_path / "a.tape.jsonl")
    back = unpack(tmp_path / "a.tape.jsonl", tmp_path / "back")
    pack(back, tmp_path / "b.tape.jsonl")
    assert (tmp_path / "a.tape.jsonl").read_bytes() == (tmp_path / "b.tape.jsonl").read_bytes()


def test_nothing_of_the_machine_is_in_the_file(run, tmp_path):
    pack(run.path, tmp_path / "a.tape.jsonl")
    for line in (tmp_path / "a.tape.jsonl").read_text().splitlines()[1:]:
        assert not {"pid", "wall", "mono", "crc"} & set(json.loads(line))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", TapeDamaged),
        ("not json\n", TapeDamaged),
        ('{"some": "json"}\n', TapeDamaged),
        ('{"playhead": 99, "run": "x"}\n', TapeTooNew),
        ('{"playhead": 1, "run": "x"}\n{"in": "1"}\n', TapeDamaged),
        ('{"playhead": 1, "run": "x"}\n{"in": "../../etc", "seq": 0, "kind": "x"}\n', TapeDamaged),
    ],
)
def test_a_file_that_is_no_tape_is_said_with_its_line(tmp_path, text, error):
    (tmp_path / "a.tape.jsonl").write_text(text)
    with pytest.raises(error):
        unpack(tmp_path / "a.tape.jsonl", tmp_path / "back")

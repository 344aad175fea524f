"""A tape as one file: nothing of the machine in it, nothing of the run lost."""

import contextlib
import json
import re

import pytest

import playhead
from playhead.errors import TapeDamaged, TapeTooNew
from playhead.launch.replaying.replay_run import check_tape
from playhead.recording.adapter import FunctionAdapter
from playhead.recording.deck import Call, Deck
from playhead.replay.matching.taped import load
from playhead.story import tell
from playhead.tape.care.verify import verify
from playhead.tape.reader import Tape
from playhead.tape.single_file import checksum_of, pack, unpack


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


# Characters at which `str.splitlines` splits and JSON does not escape.
SEPARATORS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"


def test_a_text_with_any_separator_of_lines_comes_back(tmp_path):
    with playhead.record(store=tmp_path / "store", name=f"a{SEPARATORS}b") as run:
        run.emit("x", f"a{SEPARATORS}b")
    pack(run.path, tmp_path / "a.tape.jsonl")
    back = Tape(unpack(tmp_path / "a.tape.jsonl", tmp_path / "back"))
    assert [one.data for one in back.events() if one.kind == "x"] == [f"a{SEPARATORS}b"]


def one_letter(raw):
    return raw.replace(b"recalled", b"recolled")


def the_command(raw):
    return raw.replace(b'"command":[', b'"command":["sh",')


def the_last_line_lost(raw):
    return raw[: raw.rstrip().rindex(b"\n") + 1]


def two_lines_exchanged(raw):
    head, first, second, *rest = raw.splitlines(keepends=True)
    return b"".join([head, second, first, *rest])


def an_empty_line_more(raw):
    return raw + b"\n"


@pytest.mark.parametrize(
    "change",
    [one_letter, the_command, the_last_line_lost, two_lines_exchanged, an_empty_line_more],
    ids=lambda one: one.__name__,
)
def test_a_file_that_was_changed_does_not_verify(run, tmp_path, change):
    file = tmp_path / "a.tape.jsonl"
    pack(run.path, file)
    raw = file.read_bytes()
    assert change(raw) != raw
    file.write_bytes(change(raw))
    found = verify(unpack(file, tmp_path / "back"))
    assert (found.ok, found.file_checksum) == (False, "wrong")
    assert "it was changed after Playhead wrote it" in str(found.damages[-1])
    with pytest.raises(TapeDamaged, match="A replay of it would prove nothing"):
        check_tape(tmp_path / "back")


def test_every_changed_byte_of_a_file_is_noticed(run, tmp_path):
    file = tmp_path / "a.tape.jsonl"
    pack(run.path, file)
    raw = file.read_bytes()
    at_the_sum = raw.index(b'"sha256":"')
    assert checksum_of(raw) == "right"
    for at in {*range(900), *range(0, len(raw), 97)}:
        changed = raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]
        expected = ("wrong", "none") if at_the_sum <= at < at_the_sum + 75 else ("wrong",)
        assert checksum_of(changed) in expected, at


def test_the_checksum_survives_a_change_of_line_ends_and_may_be_removed(run, tmp_path):
    file = tmp_path / "a.tape.jsonl"
    pack(run.path, file)
    raw = file.read_bytes()
    file.write_bytes(raw.replace(b"\n", b"\r\n"))
    assert verify(unpack(file, tmp_path / "windows")).file_checksum == "right"
    file.write_bytes(re.sub(rb'"sha256":"[0-9a-f]{64}",', b"", raw))
    found = verify(unpack(file, tmp_path / "edited"))
    assert (found.ok, found.file_checksum) == (True, "none")


HOSTILE = (
    None,
    True,
    -1,
    1e308,
    float("inf"),
    2**70,
    "x",
    "9" * 4000,
    [],
    {},
    [[]],
    "\0",
    "\ud800",
)


@pytest.mark.parametrize("value", HOSTILE, ids=lambda one: repr(one)[:12])
def test_a_hostile_member_in_any_place_is_read_or_refused(run, tmp_path, value):
    file = tmp_path / "a.tape.jsonl"
    pack(run.path, file)
    lines = [json.loads(line) for line in file.read_text().split("\n")[:3]]
    number = 0
    for at, members in enumerate(lines):
        for name in members:
            rows = [*lines]
            rows[at] = {**members, name: value}
            file.write_text("".join(json.dumps(row) + "\n" for row in rows))
            number += 1
            with contextlib.suppress(TapeDamaged, TapeTooNew):
                verify(unpack(file, tmp_path / f"back{number}"))
    assert number > 20

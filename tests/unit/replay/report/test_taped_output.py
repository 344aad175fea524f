import pytest

from playhead.recording.deck import Piece, Taped
from playhead.recording.encoder import NewEvent
from playhead.recording.recorder import Recorder
from playhead.replay.modes.taped_mode import with_output
from playhead.tape.reader import Tape


@pytest.fixture
def printed(tmp_path):
    """The answer of a child that wrote from `start` to `end` of what a run printed."""

    def answer(parts, wrote):
        recorder = Recorder(run=tmp_path, run_id="run", who="test")
        for stream, text, size in parts:
            recorder.append(NewEvent("output", {"stream": stream, "bytes": size, "text": text}))
        recorder.close()
        tape = Tape(tmp_path)
        outputs = [event for event in tape.events() if event.kind == "output"]
        taped = Taped(how="returned", value=0, facts={"wrote": wrote})
        return [(one.stream, one.data) for one in with_output(taped, {}, tape, outputs).pieces]

    return answer


PARTS = [("stdout", "before\n", 7), ("stderr", "err\n", 4), ("stdout", "child\nafter\n", 12)]


def test_a_childs_part_is_cut_out_of_the_whole(printed):
    wrote = {"stdout": ["stdout", 7, 13], "stderr": ["stderr", 0, 4]}
    assert printed(PARTS, wrote) == [("stdout", b"child\n"), ("stderr", b"err\n")]


def test_a_part_may_begin_in_one_event_and_end_in_another(printed):
    assert printed(PARTS, {"stdout": ["stdout", 3, 9]}) == [("stdout", b"ore\nch")]


def test_what_lies_beyond_the_tape_is_not_there(printed):
    assert printed(PARTS, {"stdout": ["stdout", 100, 200]}) == []


def test_a_part_with_a_secret_taken_out_counts_where_it_begins(printed):
    parts = [("stdout", "a\n", 2), ("stdout", "[redacted]\n", 40), ("stdout", "b\n", 2)]
    assert printed(parts, {"stdout": ["stdout", 2, 44]}) == [("stdout", b"[redacted]\nb\n")]


def test_an_answer_without_such_output_stays_as_it_is():
    taped = Taped(how="returned", pieces=[Piece(stream="stdout", data=b"x", at_ns=0)])
    assert with_output(taped, {}, None, []) is taped

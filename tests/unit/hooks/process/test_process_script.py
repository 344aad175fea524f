from playhead.hooks.process.script import Show, Wait, ending_of, script_of
from playhead.recording.calls import Moment
from playhead.recording.deck import Piece, Taped


def played(*pieces, how="returned", value=0, sent=False, **facts):
    made = [Piece(stream=stream, data=data, at_ns=at) for at, (stream, data) in enumerate(pieces)]
    return script_of(Taped(how=how, value=value, pieces=made, facts=facts), sent=sent)


def test_what_the_program_saw_waits_for_what_it_did_before():
    script = played(
        ("stdout", b"> "),
        ("stdin", b"1+1\n"),
        ("stdout", b"2\n"),
        ("stderr", b"warning\n"),
        ("closed", b"stdin"),
        ("signal", b"SIGTERM"),
        ("eof", b"stdout"),
        exited_ns=99,
    )
    assert script.steps == (
        Show(stream="stdout", data=b"> ", at_ns=0),
        Wait(stdin=4, lines=1, at_ns=1),
        Show(stream="stdout", data=b"2\n", at_ns=2),
        Show(stream="stderr", data=b"warning\n", at_ns=3),
        Wait(stdin=4, lines=1, closed=frozenset({"stdin"}), signals=1, at_ns=5),
        Show(stream="stdout", data=None, at_ns=6),
    )
    assert script.stdin == b"1+1\n"
    assert script.signals == ("SIGTERM",)
    assert script.ended_ns == 99


def test_the_end_of_a_stream_comes_where_the_program_saw_it():
    ended, eof = Moment(90), Moment(1)
    ended.place = object()
    script = played(
        ("stdout", b"a"),
        ("stdout", b"b"),
        ("stderr", b"c"),
        exited_ns=ended,
        eof_ns={"stdout": eof},
    )
    assert [(step.stream, step.data) for step in script.steps] == [
        ("stdout", b"a"),
        ("stdout", b"b"),
        ("stdout", None),
        ("stderr", b"c"),
    ]


def test_a_line_that_was_not_ended_is_waited_for_by_its_length():
    assert played(("stdin", b"half"), ("stdout", b"x")).steps[0].lines is None


def test_a_process_whose_input_was_known_ends_after_it_was_read():
    assert played(("stdout", b"x"), sent=True).steps[-1] == Wait(closed=frozenset({"stdin"}))


def test_the_stand_in_is_told_to_end_as_the_process_did():
    assert ending_of(0, {}) == 0
    assert ending_of(None, {"exit_code": 3}) == 3
    assert ending_of(-9, {}) == -9
    assert played(how="left").ending is None
    assert played(how="cut").cut


def test_a_process_that_was_looked_for_ends_between_two_looks():
    assert played(exited_ns=2_000, alive_ns=1_000).ended_ns == 1_500


def test_output_that_is_held_back_waits_after_the_input_that_came_before_it():
    held = played(("stdin", b"a\n"), ("stdout", b"x"), ("stdout", b"y")).held()
    assert [type(step) for step in held.steps] == [Wait, Wait, Show, Show]
    assert held.steps[1].for_show
    assert played(("stdin", b"a\n")).held().steps[-1].for_show  # no output: the exit waits

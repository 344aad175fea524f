import pytest

from playhead.testing import Reply, ToolCall, Usage
from playhead.views.play.frames import frames_of
from playhead.views.play.transcript import Transcript


@pytest.fixture
def lines(told):
    def of(tape, width=80):
        transcript = Transcript(width)
        transcript.add(frames_of(told(tape)))
        transcript.close()
        return [line.plain.rstrip() for line in transcript.page.lines]

    return of


def test_a_run_is_told_as_it_happened(forge, lines):
    tape = forge()
    turn = tape.turn("act", "pay it back")
    asked = tape.llm(
        "Please refund A-1009.",
        Reply(
            text="Let me look.",
            thinking="An order.",
            tool_calls=[ToolCall(name="lookup", arguments={"n": 1})],
            usage=Usage(input=100, output=10),
        ),
        took=2.0,
        parent=turn,
    )
    tool = tape.call("tool", "lookup", {"arguments": {"n": 1}}, cause=asked, parent=turn)
    tape.tool("inner", {}, took=0.5, value=3, parent=tool)
    tape.outcome(tool, value=4)
    tape.seam(turn, "looked up")
    tape.tool("pay", {}, error=TimeoutError("no answer"), parent=turn)
    tape.turn_end(turn)
    assert lines(tape) == [
        "00:00.0  turn act · pay it back",
        "00:00.0    #1 llm claude-sonnet-4-5",
        "             ‹ Please refund A-1009.",
        "             ~ An order.",
        "             › Let me look.",
        "00:02.0    ✓ #1 → lookup  100→10  $0.0004  2.0 s",
        "00:02.0    #2 tool lookup(n=1)",
        "00:02.0      #3 tool inner() → 3  0.5 s",
        "00:02.5    ✓ #2 → 4  0.5 s",
        "00:02.5    ◆ looked up",
        "00:02.5    #4 tool pay()",
        "00:02.6    ✗ #4 TimeoutError: no answer  0.1 s",
        "00:02.6  ✓ turn act  2.6 s",
    ]


def test_two_streams_never_share_a_line(forge, lines):
    tape = forge()
    first = tape.call("process", "a", {}, command="a")
    second = tape.call("process", "b", {}, command="b")
    for call, piece in ((first, b"one "), (second, b"uno "), (first, b"two\n"), (second, b"due\n")):
        tape.chunk(call, piece, "stdout")
    told = lines(tape)
    assert [line.strip() for line in told[2:]] == ["│ one", "│ uno", "│ two", "│ due"]


def test_what_is_printed_while_a_model_speaks_is_told_when_it_has_finished(forge, lines):
    tape = forge()
    call = tape.llm("hello", Reply(text="one two three four five six", chunks=3), cut=5)
    tape.event("output", {"stream": "stdout", "text": "one "})
    tape.event("output", {"stream": "stdout", "text": "two\n"})
    tape.outcome(call)
    told = [line.strip() for line in lines(tape)]
    assert told[-3:-1] == ["› one two three four", "│ one two"]


def test_the_end_of_a_broken_line_needs_no_line_of_its_own(forge, lines):
    tape = forge()
    tape.event("output", {"stream": "stdout", "text": "half"})
    tape.tool("lookup", {}, value=1)
    tape.event("output", {"stream": "stdout", "text": "\nnext\n"})
    assert [line.strip() for line in lines(tape)] == [
        "│ half",
        "00:00.0  #1 tool lookup() → 1  0.1 s",
        "│ next",
    ]


def test_a_flood_of_output_is_cut_short_and_the_programs_own_is_not(forge, lines):
    tape = forge()
    call = tape.call("process", "yes", {}, command="yes")
    tape.chunk(call, b"y\n" * 1000, "stdout")
    tape.outcome(call, exit_code=0)
    told = lines(tape)
    assert len(told) == 1 + 12 + 1 + 1
    assert "has the rest" in told[-2]
    tape.event("output", {"stream": "stdout", "text": "n\n" * 100})
    assert len(lines(tape)) == len(told) + 100


def test_a_lane_is_named_where_it_is_not_the_main_one(forge, lines):
    tape = forge()
    tape.tool("lookup", {}, lane="main/2")
    assert lines(tape)[0].startswith("00:00.0  [main/2] #1 tool lookup()")


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_no_line_is_wider_than_the_page(forge, lines, width):
    tape = forge()
    turn = tape.turn("a turn with a long name " * 3, "and a purpose " * 9)
    parent = turn
    for depth in range(12):
        parent = tape.call("tool", f"nested{depth}", {"arguments": {"x": "y" * 99}}, parent=parent)
    tape.llm("question " * 50, Reply(text="answer " * 50 + "x" * 200), parent=parent)
    tape.tool("fails", {}, error=ValueError("because " * 50), parent=parent)
    assert max(map(len, lines(tape, width))) <= width

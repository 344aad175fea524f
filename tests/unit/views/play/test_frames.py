import pytest

from playhead import events
from playhead.testing import Reply, ToolCall, Usage
from playhead.views.play.frames import FrameFilter, frames_of


def seconds(frames):
    return [round(frame.at_ns / 1e9, 3) for frame in frames]


def test_words_come_when_they_came(forge, told):
    tape = forge()
    tape.now = 3.0  # the first second of a tape is that of its first frame
    tape.llm("hello", Reply(text="one two three four", chunks=4), took=4.0)
    frames = [frame for frame in frames_of(told(tape)) if frame.part == "said"]
    assert "".join(frame.text for frame in frames) == "one two three four"
    assert len(frames) == 4
    assert all(
        later > earlier
        for earlier, later in zip(seconds(frames), seconds(frames)[1:], strict=False)
    )
    assert 1.0 < seconds(frames)[0] < seconds(frames)[-1] < 4.0


def test_what_is_inside_begins_after_and_ends_before_also_where_clocks_tie(forge, told):
    tape = forge()
    turn = tape.turn("act")
    outer = tape.call("tool", "outer", {}, parent=turn)
    inner = tape.call("http", "GET x", {}, parent=outer)
    tape.outcome(inner)
    tape.outcome(outer)
    tape.seam(turn, "done")
    tape.turn_end(turn)
    told_of = [(frame.part, getattr(frame.item, "name", "")) for frame in frames_of(told(tape))]
    assert told_of == [
        ("begin", "act"),
        ("begin", "outer"),
        ("begin", "GET x"),
        ("end", "GET x"),
        ("end", "outer"),
        ("seam", "act"),
        ("end", "act"),
    ]
    assert [frame.depth for frame in frames_of(told(tape))] == [0, 1, 2, 2, 1, 0, 0]


def test_what_was_spent_grows_with_the_tape(forge, told):
    tape = forge()
    tape.llm("a", Reply(text="x", usage=Usage(input=100, output=10)))
    tape.llm("b", Reply(text="y", usage=Usage(input=200, output=20)))
    ends = [frame for frame in frames_of(told(tape)) if frame.part == "end"]
    assert [(frame.calls, frame.tokens) for frame in ends] == [(1, 110), (2, 330)]
    assert 0 < ends[0].cost_usd < ends[1].cost_usd


def test_a_run_that_was_resumed_goes_on_where_it_had_stopped(forge, told):
    tape = forge()
    tape.now = 1.0
    tape.tool("before", {}, took=1.0)
    tape.now = 86_400.0
    tape.event("run.start", {"resumed": True})
    tape.now += 2.0
    tape.tool("after", {}, took=1.0)
    frames = frames_of(told(tape))
    assert seconds(frames) == [0.0, 1.0, 1.0, 3.0, 4.0]
    assert frames[2].kind == events.RUN_START


def test_times_never_go_back_also_where_the_clock_did(forge, told):
    tape = forge()
    for now in (5.0, 2.0, 9.0):
        tape.now = now
        tape.event("tick", {"at": now})
    assert seconds(frames_of(told(tape))) == [0.0, 0.0, 4.0]


def test_what_a_process_prints_is_put_together_from_letters_cut_in_two(forge, told):
    tape = forge()
    call = tape.call("process", "echo", {"argv": ["echo"]})
    for piece in ("é".encode()[:1], "é".encode()[1:], b"\x1b[31mred\x1b[0m\n"):
        tape.chunk(call, piece, "stdout")
    tape.outcome(call, exit_code=0)
    printed = [frame.text for frame in frames_of(told(tape)) if frame.part == "printed"]
    assert "".join(printed) == "éred\n"


@pytest.fixture
def busy(forge):
    tape = forge()
    turn = tape.turn("act")
    asked = tape.llm(
        "hello", Reply(text="hi", tool_calls=[ToolCall(name="lookup")]), parent=turn, lane="main/1"
    )
    tape.tool("lookup", {}, error=ValueError("no"), cause=asked, parent=turn)
    tape.event("plan:made", {"steps": 1})
    tape.event("output", {"stream": "stdout", "text": "hi\n"})
    tape.turn_end(turn)
    return tape


@pytest.mark.parametrize(
    ("shown", "parts"),
    [
        (FrameFilter(boundaries=frozenset({"tool"})), {"begin", "end"}),
        (FrameFilter(kinds=("plan:*",)), {"note"}),
        (FrameFilter(kinds=("turn.*",)), {"begin", "end"}),
        (FrameFilter(lanes=("main/1",)), {"begin", "said", "end"}),
        (FrameFilter(kinds=("output",), output=False), set()),
        (FrameFilter(kinds=("output",)), {"printed"}),
    ],
)
def test_a_selection_is_of_what_it_asks_for(busy, told, shown, parts):
    assert {frame.part for frame in frames_of(told(busy), shown)} == parts


def test_a_call_that_fails_is_a_failure_and_one_that_never_ends_has_no_end(busy, told):
    busy.call("tool", "hangs", {})
    frames = frames_of(told(busy))
    assert [frame.item.name for frame in frames if frame.is_failure] == ["lookup"]
    assert [frame.part for frame in frames if getattr(frame.item, "name", "") == "hangs"] == [
        "begin"
    ]

import pytest

from playhead.story import CallItem, Prices, tell
from playhead.tape.reader import Tape
from playhead.testing import Failure, Reply, ToolCall, Usage


def story_of(tape, **options):
    return tell(Tape(tape.path), **options)


def test_calls_are_numbered_in_the_order_in_which_they_were_asked(forge):
    tape = forge()
    first = tape.call("tool", "slow", {})
    second = tape.call("tool", "quick", {})
    tape.outcome(second, value=2)
    tape.outcome(first, value=1)
    story = story_of(tape)
    assert [(call.number, call.name, call.value) for call in story.calls()] == [
        (1, "slow", 1),
        (2, "quick", 2),
    ]
    assert story.call(2).name == "quick"
    assert story.call(3) is None


def test_a_tool_call_stands_under_the_answer_that_asked_for_it(forge):
    tape = forge()
    turn = tape.turn("act")
    asked = tape.llm("hi", Reply(tool_calls=[ToolCall(name="lookup")]), parent=turn)
    tool = tape.tool("lookup", {}, parent=turn, cause=asked)
    inner = tape.tool("inner", {}, parent=tool)
    ref = tape.pid
    story = story_of(tape)
    assert story.children[None] == (f"{ref}:{turn}",)
    assert story.children[f"{ref}:{turn}"] == (f"{ref}:{asked}",)
    assert story.children[f"{ref}:{asked}"] == (f"{ref}:{tool}",)
    assert story.children[f"{ref}:{tool}"] == (f"{ref}:{inner}",)


def test_totals_count_every_kind_and_know_what_they_do_not_know(forge):
    tape = forge()
    usage = Usage(input=100, output=10, cache_read=1000, cache_write=50)
    tape.llm("a", Reply(text="x", usage=usage))
    tape.llm("b", Reply(text="x", usage=usage, model="a-model-without-a-price"))
    tape.tool("lookup", {}, error=ValueError("no"))
    tape.event("gap", {"lost": 3, "why": "disk full"})
    tape.event("hole", {"what": "grpc", "why": "unknown"})
    totals = story_of(tape).totals
    assert (totals.calls, totals.llm_calls, totals.tool_calls, totals.failures) == (3, 2, 1, 1)
    assert (totals.input_tokens, totals.output_tokens) == (2300, 20)
    assert (totals.cache_read_tokens, totals.cache_write_tokens) == (2000, 100)
    assert totals.unpriced == 1
    assert totals.cost_usd > 0
    assert (totals.lost, totals.holes) == (3, 1)


def test_a_price_of_ones_own_comes_first(forge):
    tape = forge()
    tape.llm("a", Reply(text="x", usage=Usage(input=1_000_000, output=0)))
    prices = Prices(overrides={"claude-*": {"input": 5, "output": 1}})
    assert story_of(tape, prices=prices).totals.cost_usd == pytest.approx(5.0)


def test_an_answer_from_a_tape_cost_nothing(forge):
    tape = forge()
    usage = Usage(input=1_000_000, output=0)
    tape.llm("a", Reply(text="x", usage=usage), match={"rung": "exact", "of": "1:2"})
    assert story_of(tape).totals.cost_usd == 0.0


def test_a_stream_that_was_cut_keeps_what_had_come(forge):
    tape = forge()
    call = tape.llm("hi", Reply(text="one two three four", chunks=4), cut=6)
    tape.outcome(call, "cut", error=None)
    (item,) = story_of(tape).calls()
    assert item.how == "cut"
    assert item.llm[0].response.text == "one two three"
    assert not item.llm[0].response.complete


def test_an_answer_that_says_that_it_failed_is_a_failure(forge):
    tape = forge()
    tape.llm("hi", Reply(error=Failure(status=429, message="slow down")))
    http = tape.call("http", "GET x", {})
    tape.head(http, 503)
    tape.outcome(http, status=503)
    failures = [call.failure for call in story_of(tape).calls()]
    assert (failures[0].type, failures[0].message) == ("429 rate_limit_error", "slow down")
    assert failures[1].type == "HTTP 503"


def test_the_last_turn_is_the_one_that_the_run_ended_in(forge):
    tape = forge()
    outer = tape.turn("outer")
    tape.seam(outer, "began")
    inner = tape.turn("inner", parent=outer)
    tape.seam(inner, "half way")
    tape.turn_end(inner, error=ValueError("no"))
    tape.turn_end(outer, error=ValueError("no"))
    tape.end("failed", ValueError("no"))
    story = story_of(tape)
    assert story.last_seam == "half way"
    assert story.items[story.failed_turn].name == "inner"


def test_a_resumed_run_has_not_ended_before_it_ends_again(forge):
    tape = forge()
    tape.event("run.end", {"status": "failed", "took_ns": 1})
    tape.event("run.start", {"resumed": True})
    assert story_of(tape).status == "interrupted"
    tape.end()
    assert story_of(tape).status == "ok"


def test_events_of_the_users_own_stay_his_also_where_they_share_our_words(forge):
    tape = forge()
    tape.event("call", {"boundary": "phone", "name": "mum"}, user=True)
    tape.event("plan:made", {"steps": 3}, why="because")
    story = story_of(tape)
    assert story.totals.calls == 0
    assert [(item.kind, item.why) for item in story.items.values()] == [
        ("call", None),
        ("plan:made", "because"),
    ]


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("call", None),
        ("call", {"boundary": 5, "name": ["x"], "request": "r", "api": 7}),
        (
            "call",
            {"boundary": "llm", "name": "x", "api": "anthropic.messages", "request": {"body": 5}},
        ),
        ("chunk", {"call": "nobody", "stream": 5, "b64": "!!", "sizes": "x", "at_ns": {}}),
        ("chunk", {"call": 2, "text": 5}),
        ("outcome", {"call": 99, "how": 5, "took_ns": "long"}),
        ("turn.start", [1, 2]),
        ("turn.end", {"turn": None}),
        ("seam", {"turn": 2, "name": None, "at_ns": "x", "took_ns": None}),
        ("gap", {"lost": "many"}),
        ("run.end", {"status": "superb", "error": "x", "exit_code": "y"}),
        ("output", {"stream": "stderr", "text": None}),
    ],
)
def test_an_event_of_a_strange_shape_spoils_nothing_else(forge, kind, data):
    tape = forge()
    tape.call("tool", "before", {})
    tape.event(kind, data)
    tape.tool("after", {}, value=1)
    names = [call.name for call in story_of(tape).calls()]
    assert "before" in names
    assert "after" in names


def test_pieces_keep_their_boundaries_and_their_times(forge):
    tape = forge()
    call = tape.call("http", "GET x", {})
    data = {
        "call": call,
        "stream": "body",
        "text": "abcdef",
        "sizes": [1, 2, 3],
        "at_ns": [5, 6, 7],
    }
    tape.event("chunk", data, parent=call)
    tape.event("chunk", {**data, "sizes": [99], "at_ns": []}, parent=call)
    (item,) = story_of(tape).calls()
    assert isinstance(item, CallItem)
    assert [(piece.data, piece.at_ns) for piece in item.pieces] == [
        (b"a", 5),
        (b"bc", 6),
        (b"def", 7),
        (b"abcdef", 0),
    ]


def test_a_beginning_says_that_it_is_one_and_calls_nothing_in_it_in_flight(forge):
    tape = forge()
    turn = tape.turn("respond")
    tape.llm("hi", Reply(text="hello", usage=Usage(input=10, output=5)), parent=turn)
    first = tape.tool("first", {}, value=1, parent=turn)
    late = tape.call("tool", "late", {}, parent=turn)
    tape.outcome(late, value=2)
    tape.turn_end(turn, error=ValueError("no"))
    tape.end("failed", ValueError("no"))
    whole = story_of(tape)
    begun = story_of(tape, first=late + 1)
    assert (whole.whole, begun.whole, begun.totals.events) == (True, False, late + 1)
    assert begun.status == "failed"
    assert (begun.failure, begun.failed_turn, begun.in_flight) == (None, None, ())
    assert begun.calls()[0].cost is None
    assert begun.duration_ns >= whole.duration_ns
    # What has ended in it is as the whole has it.
    ref = f"{tape.pid}:{first}"
    assert begun.items[ref] == whole.items[ref]
    assert story_of(tape, first=whole.totals.events) == whole


def test_the_beginning_of_a_replay_has_what_it_left_on_the_tape_it_was_made_from(forge):
    original = forge("20261115-071105-orig")
    asked = original.tool("lookup", {"order": 1}, value="paid")
    original.end()
    replay = forge("20261115-071105-twin", replay_of="20261115-071105-orig")
    match = {"of": f"{original.pid}:{asked}", "quiet": True}
    replay.outcome(replay.call("tool", "lookup", match=match))
    replay.tool("more", {}, value=1)
    begun = story_of(replay, first=4)
    assert not begun.whole
    assert begun.calls()[0].value == "paid"

"""A fault says what it is, fires where it says, and looks like the real thing."""

import json

import pytest

import playhead
from playhead.errors import UsageError
from playhead.recording.adapter import FunctionAdapter
from playhead.recording.deck import Call, Deck, Piece, Taped
from playhead.replay.modes.chaos_trials import ranked, result_of, trials
from playhead.replay.modes.fault_mode import FaultMode, answer_for
from playhead.replay.modes.faults import drawn, fires, fits, parse_fault
from playhead.replay.modes.taped_mode import ReplayMode


@pytest.mark.parametrize(
    ("spec", "kind", "argument"),
    [
        ("llm:3=529", "status", "529"),
        ("llm:2=cut@5", "cut", "5"),
        ("llm:*=slow:30s@10%", "slow", "30000000000"),
        ("tool:search=raise:TimeoutError", "raise", "TimeoutError"),
        ('tool:2=return:{"a": 1}', "return", '{"a": 1}'),
        ("process:git*=exit:128", "exit", "128"),
        ("process:3=kill", "kill", ""),
        ("http:api.*=reset", "reset", ""),
    ],
)
def test_every_kind_of_fault_is_understood(spec, kind, argument):
    fault = parse_fault(spec)
    assert (fault.kind, fault.argument) == (kind, argument)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("llm", "is not a fault"),
        ("lmm:1=529", "has no faults"),
        ("llm:1=exit:3", "does not support 'exit'"),
        ("llm:1=slow:long", "takes a duration"),
        ("process:1=exit:x", "takes a code"),
        ("tool:1=raise:", "takes an argument"),
        ("llm:1=flood", "is not a failure"),
    ],
)
def test_a_fault_that_is_none_says_what_is_wrong_with_it(spec, why):
    with pytest.raises(UsageError, match=why):
        parse_fault(spec)


def test_a_number_means_one_call_and_with_a_count_those_that_follow():
    assert [fits(parse_fault("llm:2=529"), "llm", "m", n) for n in (1, 2, 3)] == [0, 1, 0]
    assert [fits(parse_fault("llm:2=529*2"), "llm", "m", n) for n in (1, 2, 3, 4)] == [0, 1, 1, 0]


def test_a_name_means_the_host_of_a_request_as_well():
    fault = parse_fault("http:api.*=reset")
    assert fits(fault, "http", "GET api.example.com/things", 1)
    assert not fits(fault, "http", "GET www.example.com/", 1)


def test_chance_is_the_same_for_the_same_seed_and_near_its_probability():
    fault = parse_fault("llm:*=529@10%")

    def run(seed: int) -> list[bool]:
        return [fires(fault, number=0, ordinal=n, fired=0, seed=seed) for n in range(2000)]

    assert run(7) == run(7)
    assert run(7) != run(8)
    assert 130 < sum(run(7)) < 270
    assert 0 <= drawn("x") < 1


def test_a_refusal_is_in_the_shape_of_the_api():
    fault = parse_fault("llm:1=529")
    for api, expected in [
        ("anthropic.messages", "overloaded_error"),
        ("openai.chat", "server_error"),
    ]:
        call = Call(boundary="llm", name=api, facts={"api": api})
        taped = answer_for(fault, call, None)
        assert taped.head["status"] == 529
        assert ["retry-after", "0"] in taped.head["headers"]
        assert json.loads(taped.pieces[0].data)["error"]["type"] == expected


def test_a_cut_counts_events_however_the_network_packed_them():
    body = b"".join(b"event: x\ndata: %d\n\n" % n for n in range(8))
    head = {"status": 200, "headers": [["content-type", "text/event-stream"]]}
    taped = Taped(how="returned", head=head, pieces=[Piece(stream="body", data=body, at_ns=0)])
    cut = answer_for(parse_fault("llm:1=cut@5"), Call(boundary="llm", name="m"), taped)
    assert cut.how == "cut"
    assert b"".join(piece.data for piece in cut.pieces) == body[: len(body) // 8 * 5]


def test_a_cut_never_leaves_the_answer_whole():
    head = {"status": 200, "headers": []}
    taped = Taped(how="returned", head=head, pieces=[Piece(stream="body", data=b"abcd", at_ns=0)])
    cut = answer_for(parse_fault("llm:1=cut@5"), Call(boundary="llm", name="m"), taped)
    assert [piece.data for piece in cut.pieces] == [b"ab"]


@pytest.fixture
def faulty(tmp_path):
    with playhead.record(name="now", store=tmp_path / "now") as run:

        def begin(recording, *specs, seed=0):
            faults = [parse_fault(spec) for spec in specs]
            mode = FaultMode(ReplayMode(recording, run.recorder), faults, seed=seed)
            return Deck(run.recorder, mode)

        yield begin


def test_the_call_after_a_fault_gets_the_taped_answer(taped, faulty, tool):
    recording = taped(
        lambda deck: deck.perform(tool("search", q=1), FunctionAdapter(lambda: "found"))
    )
    deck = faulty(recording, "tool:search=raise:TimeoutError")
    with pytest.raises(TimeoutError):
        deck.perform(tool("search", q=1), FunctionAdapter(lambda: "live"))
    assert deck.perform(tool("search", q=1), FunctionAdapter(lambda: "live")) == "found"


def test_a_fault_with_a_count_fires_so_often(taped, faulty, tool):
    recording = taped(
        lambda deck: deck.perform(tool("search", q=1), FunctionAdapter(lambda: "found"))
    )
    deck = faulty(recording, "tool:search=raise:ConnectionError:gone*2")
    for _ in range(2):
        with pytest.raises(ConnectionError, match="gone"):
            deck.perform(tool("search", q=1), FunctionAdapter(lambda: "live"))
    assert deck.perform(tool("search", q=1), FunctionAdapter(lambda: "live")) == "found"


def test_a_tool_may_return_what_the_fault_says(taped, faulty, tool):
    recording = taped(
        lambda deck: deck.perform(tool("search", q=1), FunctionAdapter(lambda: "found"))
    )
    deck = faulty(recording, 'tool:1=return:{"error": "none"}')
    assert deck.perform(tool("search", q=1), FunctionAdapter(lambda: "live")) == {"error": "none"}


def test_what_was_given_back_is_served_again(taped, replayed, tool):
    recording = taped(
        lambda deck: deck.perform(tool("search", q=1), FunctionAdapter(lambda: "found"))
    )
    deck, mode, _ = replayed(recording)
    deck.perform(tool("search", q=1), FunctionAdapter(lambda: "live"))
    mode.matcher.give_back(mode.matcher.calls[0])
    assert deck.perform(tool("search", q=1), FunctionAdapter(lambda: "live")) == "found"


def test_chaos_tries_every_step_before_any_twice_and_the_same_for_the_same_seed(taped, tool):
    def work(deck):
        deck.perform(tool("search", q=1), FunctionAdapter(lambda: "a"))
        deck.perform(tool("search", q=2), FunctionAdapter(lambda: "b"))

    recording = taped(work)
    planned = trials(recording, 4, 7)
    assert {one.step for one in planned[:2]} == {1, 2}
    assert planned == trials(recording, 4, 7)
    assert planned != trials(recording, 4, 8)
    assert len(trials(recording, 100, 7)) == len({one.spec for one in trials(recording, 100, 7)})


def test_what_broke_the_agent_is_ranked_before_what_it_survived(taped, tool):
    recording = taped(lambda deck: deck.perform(tool("search", q=1), FunctionAdapter(lambda: "a")))
    trial = trials(recording, 1, 0)[0]
    fired = [{"fault": trial.spec}]
    reports = [
        {"faults": fired, "recovered": True},
        {"faults": fired, "divergences": [{"kind": "missed", "boundary": "llm", "name": "m"}]},
        {"faults": fired, "exit_code": {"recorded": 0, "replayed": 1}},
        None,
        {"faults": []},
        {"faults": fired, "exit_code": {"recorded": 0, "replayed": 0}},
    ]
    results = ranked(result_of(trial, one) for one in reports)
    assert [one.outcome for one in results] == [
        "hung", "crashed", "wrong", "strayed", "recovered", "silent",
    ]  # fmt: skip

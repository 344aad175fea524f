"""What must hold of a run: each rule broken and kept, with what was found and where."""

import pytest

from playhead.story import tell
from playhead.story.invariants import Invariants, check
from playhead.tape.reader import Tape
from playhead.testing import Reply, Usage


@pytest.fixture
def original(forge):
    """Asks, looks up, refunds, answers: calls 1 to 4."""
    tape = forge("original")
    tape.llm("Where is A-17?", Reply(text="I look.", usage=Usage(input=100, output=10)))
    tape.tool("lookup", {"order": "A-17"}, value="late")
    tape.tool("refund", {"order": "A-17", "why": "it is late"}, value="done")
    tape.llm("Where is A-17?", Reply(text="It is refunded.", usage=Usage(input=200, output=20)))
    tape.event("output", {"stream": "stdout", "text": "It is "})
    tape.event("output", {"stream": "stdout", "text": "refunded.\n"})
    return tell(Tape(tape.end()))


def broken(story, original=None, **rules):
    found = check(story, original or story, Invariants(**rules))
    return [(one.what, one.found, one.call) for one in found]


KEPT = [
    {},
    {"max_steps": 4},
    {"max_cost_usd": 1.0},
    {"max_tokens": 330},
    {"max_duration_s": 60.0},
    {"must_call": ("lookup", "ref*")},
    {"must_not_call": ("send_mail",)},
    {"in_order": ("lookup", "refund")},
    {"must_say": ("refunded", "It is refunded.\n", "it is late")},
    {"must_not_say": ("password",)},
    {"min_similarity": 1.0},
    {"no_new_tools": True},
]


@pytest.mark.parametrize("rules", KEPT, ids=lambda rules: next(iter(rules), "none"))
def test_a_run_that_keeps_a_rule_is_not_mentioned(original, rules):
    assert broken(original, **rules) == []


BROKEN = [
    ({"max_steps": 2}, ("max_steps", "4", 3)),
    ({"max_tokens": 109}, ("max_tokens", "330", 1)),
    ({"max_tokens": 110}, ("max_tokens", "330", 4)),
    ({"max_duration_s": 0.5}, ("max_duration_s", "2.200 s", 2)),
    ({"must_call": ("send_mail",)}, ("must_call", "lookup, refund", None)),
    ({"must_not_call": ("ref*",)}, ("must_not_call", "refund", 3)),
    (
        {"in_order": ("refund", "lookup")},
        ("in_order", "lookup, refund (no lookup in this order)", 3),
    ),
    ({"must_say": ("sorry",)}, ("must_say", "no such text", None)),
    ({"must_not_say": ("late",)}, ("must_not_say", "it is late", 3)),
]


@pytest.mark.parametrize(("rules", "said"), BROKEN, ids=lambda one: str(next(iter(one))))
def test_a_broken_rule_says_what_was_found_and_at_which_call(original, rules, said):
    assert broken(original, **rules) == [said]


def test_a_broken_rule_reads_as_a_sentence(original):
    (one,) = check(original, original, Invariants(max_steps=2))
    assert str(one) == "max_steps: expected at most 2, found 4 at call #3"


def test_cost_is_summed_up_to_the_call_that_broke_it(original):
    ((what, found, call),) = broken(original, max_cost_usd=0.0005)
    assert (what, call) == ("max_cost_usd", 4)
    assert found.startswith("$0.0013")


def test_an_answer_from_the_tape_counts_as_what_it_cost_then(forge, original):
    first = original.calls()[0]
    tape = forge("replay", replay_of="original")
    tape.llm(
        "Where is A-17?",
        Reply(text="I look.", usage=Usage(input=100, output=10)),
        match={"rung": "exact", "of": first.ref},
    )
    replay = tell(Tape(tape.end()))
    assert replay.totals.cost_usd == 0
    assert broken(replay, original, max_cost_usd=0.0001) == [
        ("max_cost_usd", f"${first.cost.usd:.6f}", 1)
    ]


def test_another_result_is_measured_by_the_recorded_one(forge, original):
    tape = forge("other")
    tape.llm("Where is A-17?", Reply(text="It was never paid."))
    story = tell(Tape(tape.end()))
    ((what, found, call),) = broken(story, original, min_similarity=0.9)
    assert (what, call) == ("min_similarity", 1)
    assert 0 < float(found) < 0.9


def test_a_run_without_a_result_is_not_similar(forge, original):
    story = tell(Tape(forge("silent").end()))
    assert broken(story, original, min_similarity=0.1) == [
        ("min_similarity", "no answer of a model in both runs", None)
    ]


def test_each_new_tool_is_named_once(forge, original):
    tape = forge("other")
    for name in ("lookup", "send_mail", "send_mail", "shred"):
        tape.tool(name, {})
    story = tell(Tape(tape.end()))
    assert broken(story, original, no_new_tools=True) == [
        ("no_new_tools", "send_mail", 2),
        ("no_new_tools", "shred", 4),
    ]


def test_tools_of_mcp_servers_are_tools_and_their_handshakes_are_not(forge):
    tape = forge("mcp")
    for name, method in (("shop", "initialize"), ("shop.lookup", "tools/call")):
        call = tape.call("mcp", name, {"arguments": {}}, method=method)
        tape.outcome(call, value=1)
    story = tell(Tape(tape.end()))
    assert broken(story, must_not_call=("shop*",)) == [("must_not_call", "shop.lookup", 2)]


def test_all_broken_rules_are_told(original):
    rules = {"max_steps": 1, "must_call": ("a", "b"), "must_not_say": ("refunded",)}
    found = [what for what, _, _ in broken(original, **rules)]
    assert found == ["max_steps", "must_call", "must_call", "must_not_say"]

"""What the user says does not count does not count, and nothing else."""

import pytest

import playhead
from playhead.errors import ConfigError
from playhead.recording.adapter import FunctionAdapter
from playhead.recording.deck import Call
from playhead.replay.matching.ignore import rules_from, trimmer


def asked(body: str, **headers: str) -> Call:
    request = {
        "headers": [[name, value] for name, value in headers.items()],
        "body": {"text": body},
    }
    return Call(boundary="http", name="POST x", request=request)


@pytest.mark.parametrize(
    ("rule", "then", "now"),
    [
        ("body.metadata", asked('{"q":1,"metadata":{"a":1}}'), asked('{"q":1,"metadata":{"a":2}}')),
        (
            "body.items[*].id",
            asked('{"items":[{"id":1,"v":2}]}'),
            asked('{"items":[{"id":9,"v":2}]}'),
        ),
        ("header:x-trace", asked("{}", **{"X-Trace": "a"}), asked("{}", **{"X-Trace": "b"})),
        ("re:build-[0-9]+", asked("at build-17"), asked("at build-18")),
    ],
)
def test_what_a_rule_names_may_differ(taped, replayed, rule, then, now):
    recording = taped(lambda deck: deck.perform(then, FunctionAdapter(lambda: "ok")))
    deck, _, _ = replayed(recording, trim=trimmer(rules_from({"http": [rule]})))
    assert deck.perform(now, FunctionAdapter(lambda: "live")) == "ok"


def test_what_no_rule_names_still_counts(taped, replayed):
    recording = taped(
        lambda deck: deck.perform(asked('{"q":1,"m":1}'), FunctionAdapter(lambda: "ok"))
    )
    deck, _, _ = replayed(recording, trim=trimmer(rules_from({"http": ["body.m"]})))
    with pytest.raises(playhead.Divergence):
        deck.perform(asked('{"q":2,"m":1}'), FunctionAdapter(lambda: "live"))


def test_a_rule_of_another_boundary_does_not_apply(taped, replayed):
    recording = taped(lambda deck: deck.perform(asked('{"m":1}'), FunctionAdapter(lambda: "ok")))
    deck, _, _ = replayed(recording, trim=trimmer(rules_from({"llm": ["body.m"]})))
    with pytest.raises(playhead.Divergence):
        deck.perform(asked('{"m":2}'), FunctionAdapter(lambda: "live"))


def test_a_rule_of_an_unknown_boundary_is_an_error():
    with pytest.raises(ConfigError, match=r"'lmm' is not a boundary; expected one of llm, http"):
        rules_from({"lmm": ["body.m"]})
    assert len(rules_from({"*": ["body.m"], "llm": "body.n"})) == 2


def test_a_pattern_that_is_none_is_said_before_anything_runs():
    with pytest.raises(ConfigError, match="is not a pattern"):
        rules_from({"http": ["re:("]})

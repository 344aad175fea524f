"""Stages and decisions are read as people write them."""

import pytest

from playhead.errors import UsageError
from playhead.loop.stages import Stage, decide, parse_stage, spell_stage


@pytest.mark.parametrize(
    ("text", "stage"),
    [
        ("plan", Stage(name="plan", most=1)),
        ("work:5", Stage(name="work", most=5)),
        ("re-view_2.x:*", Stage(name="re-view_2.x", most=0)),
    ],
)
def test_a_stage_is_a_name_and_a_count(text, stage):
    assert parse_stage(text) == stage
    assert parse_stage(spell_stage(stage)) == stage


@pytest.mark.parametrize("text", ["", ":3", "work:0", "work:x", "../up:1", "a b", "-x"])
def test_what_is_no_stage_is_refused_with_an_example(text):
    with pytest.raises(UsageError, match="work:5"):
        parse_stage(text)


@pytest.mark.parametrize(
    ("written", "word", "reason"),
    [
        ("", "continue", None),
        ("continue\n", "continue", None),
        ("STOP", "stop", None),
        ("stop: nothing is left", "stop", "nothing is left"),
        ('{"decision": "stop", "reason": "tests pass", "files": 3}', "stop", "tests pass"),
        ('{"status": "completed"}', "stop", None),
        ("error no key", "error", "no key"),
    ],
)
def test_a_decision_is_one_word_or_json(written, word, reason):
    found = decide(written, exit_code=0, failure=None)
    assert (found.word, found.reason) == (word, reason)


@pytest.mark.parametrize("written", ["perhaps", '{"decision": 3}', "{torn", "[1]"])
def test_a_decision_that_is_none_is_an_error_that_quotes_it(written):
    found = decide(written, exit_code=0, failure=None)
    assert found.word == "error"
    assert "expected continue, stop, error" in found.reason


def test_a_failure_outweighs_what_was_written():
    assert decide("stop", exit_code=0, failure="API Error").word == "error"
    assert "exit code 7" in decide("stop", exit_code=7, failure=None).reason
    assert "signal 9" in decide("", exit_code=-9, failure=None).reason

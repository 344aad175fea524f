"""What lists and heads say about how a run ended."""

import pytest

from playhead.tape.ending import ending_of


@pytest.mark.parametrize(
    ("verdict", "glyph"),
    [
        ("identical", "✓"),
        ("recovered", "✓"),
        ("changed", "≠"),
        ("diverged", "✗"),
        ("refused", "✗"),
        ("unproven", "?"),
        ("a word of the future", "◐"),
    ],
)
@pytest.mark.parametrize("status", ["ok", "failed"])
def test_the_verdict_of_a_replay_counts_whatever_its_program_exited_with(
    forge, verdict, glyph, status
):
    tape = forge(replay_of="first", extra={"verdict": verdict})
    ending = ending_of(status, tape.manifest)
    assert (ending.word, ending.glyph) == (verdict, glyph)


def test_a_status_that_does_not_exist_is_unknown(forge):
    ending = ending_of("\x1b[2Jprocess", forge().manifest)
    assert (ending.word, ending.glyph) == ("unknown", "?")


def test_a_replay_that_was_never_judged_is_not_ok(forge):
    ending = ending_of("ok", forge(replay_of="first").manifest)
    assert (ending.word, ending.glyph, ending.tone) == ("not judged", "?", "interrupted")


@pytest.mark.parametrize("status", ["ok", "failed", "interrupted", "running"])
def test_a_recording_has_its_status_even_if_it_claims_a_verdict(forge, status):
    ending = ending_of(status, forge(extra={"verdict": "identical"}).manifest)
    assert ending.word == ending.tone == status

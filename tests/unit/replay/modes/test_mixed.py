"""Live where asked, taped elsewhere, and nothing with an effect unless it was allowed by name."""

import pytest

import playhead
from playhead.recording.adapter import FunctionAdapter
from playhead.recording.deck import Call, Deck
from playhead.replay.modes.mixed import MixedMode
from playhead.replay.modes.replay_options import Policy


@pytest.fixture
def mixed(tmp_path):
    with playhead.record(name="now", store=tmp_path / "now") as run:

        def begin(recording, **policy):
            mode = MixedMode(recording, run.recorder, Policy(**policy))
            return Deck(run.recorder, mode), run

        yield begin


def search(text: str, effect=None) -> Call:
    return Call(boundary="tool", name="search", request={"arguments": {"q": text}}, effect=effect)


QUESTION = "cheapest flight from Paris to Lisbon next Tuesday with one bag"


def test_a_live_boundary_is_performed(taped, mixed):
    deck, _ = mixed(taped(lambda deck: None), live=("llm",))
    assert (
        deck.perform(Call(boundary="llm", name="m", request={}), FunctionAdapter(lambda: "live"))
        == "live"
    )


def test_one_tool_can_be_live_by_name(taped, mixed):
    deck, _ = mixed(taped(lambda deck: None), live=("tool:sea*",))
    assert deck.perform(search("x"), FunctionAdapter(lambda: "live")) == "live"


def test_a_request_that_is_nearly_the_same_gets_the_taped_answer_with_its_score(taped, mixed):
    recording = taped(
        lambda deck: deck.perform(search(QUESTION), FunctionAdapter(lambda: "TAP 1233"))
    )
    deck, run = mixed(recording)
    assert (
        deck.perform(search(QUESTION.replace("Tuesday", "Monday")), FunctionAdapter(lambda: "live"))
        == "TAP 1233"
    )
    assert '"rung":"fuzzy"' in next(run.path.glob("tape-*")).read_text()


def test_a_fuzzy_answer_is_served_once(taped, mixed):
    deck, _ = mixed(
        taped(lambda deck: deck.perform(search(QUESTION), FunctionAdapter(lambda: "TAP 1233")))
    )
    deck.perform(search(QUESTION + " please"), FunctionAdapter(lambda: "live"))
    assert "was not run" in deck.perform(
        search(QUESTION + " please"), FunctionAdapter(lambda: "live")
    )


def test_a_tool_that_the_tape_cannot_answer_tells_the_model_so(taped, mixed):
    deck, run = mixed(taped(lambda deck: None))
    answer = deck.perform(search("anything"), FunctionAdapter(lambda: pytest.fail("it ran")))
    assert "search was not run" in answer
    assert "irreversible" in answer
    assert '"rung":"blocked"' in next(run.path.glob("tape-*")).read_text()


@pytest.mark.parametrize(
    ("effect", "policy", "runs"),
    [
        ("read", {}, False),
        ("read", {"allow_tools": ("search",)}, True),
        ("read", {"allow_all_tools": True}, True),
        ("write", {"allow_all_tools": True}, True),
        ("write", {"allow_tools": ("search",)}, True),
        (None, {"allow_all_tools": True}, True),
        ("read", {"allow_reads": False}, False),
        (None, {"allow_all_tools": True, "effects": {"search": "read"}}, True),
    ],
)
def test_what_may_run_is_decided_by_effect_and_by_name(taped, mixed, effect, policy, runs):
    deck, _ = mixed(taped(lambda deck: None), **policy)
    answer = deck.perform(search("x", effect), FunctionAdapter(lambda: "live"))
    assert (answer == "live") is runs


def test_strict_ends_the_run_at_the_first_miss(taped, mixed):
    deck, _ = mixed(taped(lambda deck: None), strict=True)
    with pytest.raises(playhead.Divergence):
        deck.perform(search("x"), FunctionAdapter(lambda: "live"))


def test_http_that_the_tape_cannot_answer_is_never_sent(taped, mixed):
    deck, _ = mixed(taped(lambda deck: None), live=("llm",), allow_all_tools=True)
    with pytest.raises(playhead.Divergence):
        deck.perform(
            Call(boundary="http", name="POST x", request={}), FunctionAdapter(lambda: "live")
        )

"""Every call is answered from the tape, or it is a divergence that helps."""

import pytest

import playhead
from playhead.recording.adapter import FunctionAdapter
from playhead.recording.deck import Call


class Refused(Exception):
    """The program's own."""


def must_not_run():
    raise AssertionError("the world was asked")


def test_a_taped_call_is_answered_without_asking_the_world(taped, replayed, tool):
    recording = taped(
        lambda deck: deck.perform(tool("add", a=1), FunctionAdapter(lambda: (1, {"b": b"x"})))
    )
    deck, _, _ = replayed(recording)
    assert deck.perform(tool("add", a=1), FunctionAdapter(must_not_run)) == (1, {"b": b"x"})


def test_a_taped_exception_is_raised_again_as_what_it_was(taped, replayed, tool):
    def fail():
        raise Refused("no", 7)

    def then(deck):
        with pytest.raises(Refused):
            deck.perform(tool("pay"), FunctionAdapter(fail))

    deck, _, _ = replayed(taped(then))
    with pytest.raises(Refused) as caught:
        deck.perform(tool("pay"), FunctionAdapter(must_not_run))
    assert caught.value.args == ("no", 7)


def test_each_taped_call_is_served_once(taped, replayed, tool):
    deck, _, _ = replayed(taped(lambda deck: deck.perform(tool("add"), FunctionAdapter(lambda: 1))))
    deck.perform(tool("add"), FunctionAdapter(must_not_run))
    with pytest.raises(playhead.Divergence, match="served already"):
        deck.perform(tool("add"), FunctionAdapter(must_not_run))


def test_identical_calls_are_served_in_their_order(taped, replayed, tool):
    answers = iter((1, 2, 3))
    recording = taped(
        lambda deck: [
            deck.perform(tool("next"), FunctionAdapter(lambda: next(answers))) for _ in range(3)
        ]
    )
    deck, _, _ = replayed(recording)
    assert [deck.perform(tool("next"), FunctionAdapter(must_not_run)) for _ in range(3)] == [
        1,
        2,
        3,
    ]


def test_identical_calls_of_two_lanes_keep_to_their_lanes(taped, replayed, tool, in_lane):
    def then(deck):
        in_lane(deck, "worker-1", tool("ask"), "one")
        in_lane(deck, "worker-2", tool("ask"), "two")

    deck, _, _ = replayed(taped(then))
    assert in_lane(deck, "worker-2", tool("ask")) == "two"
    assert in_lane(deck, "worker-1", tool("ask")) == "one"


def test_a_miss_names_the_step_the_nearest_call_the_field_and_the_next_step(taped, replayed, tool):
    deck, mode, _ = replayed(
        taped(lambda deck: deck.perform(tool("find", city="Paris"), FunctionAdapter(lambda: 1)))
    )
    with pytest.raises(playhead.Divergence) as caught:
        deck.perform(tool("find", city="Lyon"), FunctionAdapter(must_not_run))
    said = str(caught.value)
    assert "tool call 1 (find, lane main" in said
    assert "Nearest is taped call 1" in said
    assert "arguments.city differs ('Paris' → 'Lyon')" in said
    assert "playhead record" in said
    assert caught.value.entry is mode.partings[0]


def test_ids_and_times_that_clients_mint_anew_still_match_and_say_so(taped, replayed):
    def asked(uuid, when, path):
        body = f'{{"id": "{uuid}", "again": "{uuid}", "at": "{when}", "file": "{path}"}}'
        return Call(boundary="http", name="POST x", request={"body": {"text": body}})

    first = asked("6f1c2f3e-1111-4222-8333-444455556666", "2026-11-15T07:11:05Z", "/tmp/a1b2/x")
    other = asked("0a0b0c0d-9999-4888-8777-666655554444", "2026-12-24T18:00:00Z", "/tmp/zzz/x")
    deck, _, run = replayed(taped(lambda deck: deck.perform(first, FunctionAdapter(lambda: "ok"))))
    assert deck.perform(other, FunctionAdapter(must_not_run)) == "ok"
    assert '"rung":"normalised"' in next(run.path.glob("tape-*")).read_text()


def test_renaming_rejects_an_id_that_points_to_the_wrong_call(taped, replayed):
    def asked(first, second):
        body = f'{{"calls": ["{first}", "{second}"], "result_of": "{first}"}}'
        return Call(boundary="http", name="POST x", request={"body": {"text": body}})

    one, two = "6f1c2f3e-1111-4222-8333-444455556666", "0a0b0c0d-9999-4888-8777-666655554444"
    deck, _, _ = replayed(
        taped(lambda deck: deck.perform(asked(one, two), FunctionAdapter(lambda: "ok")))
    )
    wrong = Call(
        boundary="http",
        name="POST x",
        request={"body": {"text": f'{{"calls": ["{one}", "{two}"], "result_of": "{two}"}}'}},
    )
    with pytest.raises(playhead.Divergence):
        deck.perform(wrong, FunctionAdapter(must_not_run))


def test_the_order_of_keys_in_a_body_does_not_count(taped, replayed):
    def asked(text):
        return Call(boundary="http", name="POST x", request={"body": {"text": text}})

    deck, _, _ = replayed(
        taped(lambda deck: deck.perform(asked('{"a": 1, "b": 2}'), FunctionAdapter(lambda: "ok")))
    )
    assert deck.perform(asked('{"b":2,"a":1}'), FunctionAdapter(must_not_run)) == "ok"


def test_a_served_tool_makes_its_inner_calls_unnecessary(taped, replayed, tool):
    def then(deck):
        deck.perform(
            tool("search"),
            FunctionAdapter(
                lambda: deck.perform(
                    Call(boundary="http", name="GET x"), FunctionAdapter(lambda: 1)
                )
            ),
        )

    deck, mode, _ = replayed(taped(then))
    deck.perform(tool("search"), FunctionAdapter(must_not_run))
    assert mode.matcher.unserved() == []


def test_secrets_are_compared_as_they_stand_on_the_tape(taped, tmp_path, tool):
    key = "sk-ant-api03-" + "Ab1" * 20
    recording = taped(
        lambda deck: deck.perform(tool("call", api_key=key), FunctionAdapter(lambda: 1))
    )
    from playhead.recording.deck import Deck
    from playhead.replay.modes.taped_mode import ReplayMode

    with playhead.record(store=tmp_path / "then") as run:  # the same store: the same placeholders
        deck = Deck(run.recorder, ReplayMode(recording, run.recorder))
        assert deck.perform(tool("call", api_key=key), FunctionAdapter(must_not_run)) == 1
        with pytest.raises(playhead.Divergence):
            deck.perform(tool("call", api_key="another"), FunctionAdapter(must_not_run))

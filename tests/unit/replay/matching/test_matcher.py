"""Pairings under concurrency: none may be wrong, whatever the scheduler does."""

import random
import threading

from playhead.replay.matching.matcher import Matcher


def test_a_thousand_rounds_of_identical_prompts_in_parallel_pair_no_call_wrongly(
    taped, tool, in_lane
):
    lanes = [f"worker-{n}" for n in range(8)]

    def then(deck):
        for round_ in range(125):
            for lane in lanes:
                in_lane(deck, lane, tool("ask", prompt="the same"), f"{lane}:{round_}")

    recording = taped(then)
    matcher = Matcher(recording.calls, recording.below)
    wrong = []

    def work(lane):
        for round_ in range(125):
            match = matcher.take("tool", "ask", {"arguments": {"prompt": "the same"}}, lane)
            if match is None or match.call.outcome.data["value"] != f"{lane}:{round_}":
                wrong.append((lane, round_))

    shuffled = random.Random(7).sample(lanes, len(lanes))
    threads = [threading.Thread(target=work, args=(lane,)) for lane in shuffled]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert matcher.unserved() == []


def test_normalised_requests_of_two_lanes_are_not_guessed_between(taped, tool, in_lane):
    def then(deck):
        in_lane(deck, "worker-1", tool("ask", at="2026-11-15T07:11:05Z"), "one")
        in_lane(deck, "worker-2", tool("ask", at="2026-11-15T07:11:06Z"), "two")

    recording = taped(then)
    matcher = Matcher(recording.calls, recording.below)
    assert (
        matcher.take("tool", "ask", {"arguments": {"at": "2030-01-01T00:00:00Z"}}, "elsewhere")
        is None
    )
    found = matcher.take("tool", "ask", {"arguments": {"at": "2030-01-01T00:00:00Z"}}, "worker-2")
    assert found is not None
    assert found.call.outcome.data["value"] == "two"


def test_an_exact_request_is_found_in_another_lane(taped, tool, in_lane):
    recording = taped(lambda deck: in_lane(deck, "worker-1", tool("ask", n=1), "one"))
    found = Matcher(recording.calls, recording.below).take(
        "tool", "ask", {"arguments": {"n": 1}}, "main"
    )
    assert found is not None
    assert not found.lane_kept

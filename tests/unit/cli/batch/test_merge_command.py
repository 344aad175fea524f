"""`playhead batch merge`: one report, the same for every number of shards, and never green with a part missing."""

import json
import random
import re
from dataclasses import replace

import pytest

from playhead.cli.batch.batch_budget import Budget
from playhead.story.verdicts import Results, Verdict, cases_of

TAPES = [f"tapes/{name}.tape.jsonl" for name in "abcdefghijklmnop"]
REQUEST = {"options": "1", "repeat": "2", "tapes": "3"}


def verdicts(seed=1, repeat=5):
    chance = random.Random(seed)
    return [
        Verdict(
            tape=tape,
            name=f"name of {tape}",
            outcome=chance.choice(["passed"] * 6 + ["diverged", "broken", "error"]),
            round=number,
            replay=f"replay-{number}",
            took_s=chance.random(),
            figures={"spent_usd": chance.random() / 7},
            answer=chance.choice("xyz"),
        )
        for tape in TAPES
        for number in range(1, repeat + 1)
    ]


def part(index, count, found=None, **more):
    found = verdicts() if found is None else found
    mine = [one for one in found if TAPES.index(one.tape) % count == index - 1]
    order = sorted({one.tape for one in mine}, reverse=True)
    members = {"started_at": f"2026-11-15T07:11:0{index % 3}.000000Z", "host": "ci"}
    members |= {"took_s": 2.0 * index, "shard": (index, count), "request": REQUEST}
    return Results(cases=cases_of(mine, order), **(members | more))


@pytest.fixture
def shards(here):
    def write(count, **more):
        paths = []
        for index in range(1, count + 1):
            path = here / f"shard-{count}-{index}.json"
            path.write_text(json.dumps(part(index, count, **more).as_json()))
            paths.append(path)
        return paths

    return write


def test_one_three_and_eight_shards_give_the_same_report(shards, here, playhead):
    reports = set()
    for count in (1, 3, 8):
        # Every number of shards has a first one, so that the start is the same.
        paths = shards(count, started_at="2026-11-15T07:11:05.000000Z")
        files = [here / f"merged.{kind}" for kind in ("json", "xml", "html")]
        words = ["--json", files[0], "--junit", files[1], "--html", files[2]]
        ended = playhead("batch", "merge", *reversed(paths), *words)
        assert ended.code == 3, ended.err
        reports.add((ended.out, *(one.read_bytes() for one in files)))
    assert len(reports) == 1


def test_a_merged_report_can_be_merged_again(shards, here, playhead):
    first, second = here / "first.json", here / "second.json"
    playhead("batch", "merge", *shards(3), "--json", first)
    playhead("batch", "merge", first, "--json", second)
    assert first.read_bytes() == second.read_bytes()


def test_a_missing_shard_is_named_and_the_batch_is_not_green(shards, here, playhead):
    good = [replace(one, outcome="passed") for one in verdicts()]
    paths = shards(3, found=good)
    assert playhead("batch", "merge", *paths).code == 0
    ended = playhead("batch", "merge", paths[0], paths[2], "--json", here / "merged.json")
    assert ended.code == 1
    assert "no report of shard 2/3" in ended.out
    assert json.loads((here / "merged.json").read_text())["missing"] == ["2/3"]


def test_a_shard_that_stopped_early_makes_the_whole_incomplete(shards, here, playhead):
    good = [replace(one, outcome="passed") for one in verdicts()]
    paths = shards(2, found=good)
    stopped = part(2, 2, found=good, stopped="stopped by --budget", not_run=3)
    paths[1].write_text(json.dumps(stopped.as_json()))
    ended = playhead("batch", "merge", *paths)
    assert ended.code == 1
    assert "stopped by --budget" in ended.out
    assert "3 not run" in ended.out


def test_reports_that_do_not_belong_together_are_refused(shards, here, playhead):
    first, _, third = shards(3)
    other = here / "other.json"
    for report, said in (
        (part(1, 3), "are both reports of shard 1/3"),
        (part(1, 2), "different numbers of shards"),
        (part(2, 3, request={**REQUEST, "repeat": "9"}), "different batches: --repeat differ"),
        (part(2, 3, request={**REQUEST, "tapes": "9"}), "the selected tapes differ"),
    ):
        other.write_text(json.dumps(report.as_json()))
        ended = playhead("batch", "merge", first, third, other)
        assert ended.code == 2, said
        assert said in ended.err


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "null", '{"cases": 3}', '{"cases": [{"verdicts": [1]}]}', "[" * 100_000],
)
def test_another_file_is_not_taken_for_a_report(here, playhead, text):
    path = here / "other.json"
    path.write_text(text)
    ended = playhead("batch", "merge", path)
    assert ended.code == 2
    assert "is not a report of a batch" in ended.err


def case_of(tape, *outcomes):
    return [
        Verdict(tape=tape, name=tape, outcome=one, round=at) for at, one in enumerate(outcomes, 1)
    ]


def results(*found, **more):
    order = list(dict.fromkeys(one.tape for one in found))
    return Results(cases=cases_of(found, order), started_at="", took_s=0, **more)


def test_the_pass_rate_has_the_interval_and_the_powers_of_the_textbook():
    ten = case_of("a", *["passed"] * 8, "diverged", "broken")
    found = results(*ten).pass_rate
    assert (found.passes, found.replays, found.rate) == (8, 10, 0.8)
    # Wilson for 8 of 10: 0.4902 to 0.9433 (Brown, Cai and DasGupta 2001).
    assert (found.low, found.high) == (0.4902, 0.9433)
    assert found.pass_hat[:2] == (0.8, round(8 * 7 / (10 * 9), 4))
    assert found.pass_hat[9] == 0.0
    always = results(*case_of("a", *["passed"] * 5)).pass_rate
    assert (always.low, always.high) == (0.5655, 1.0)
    never = results(*case_of("a", *["diverged"] * 5)).pass_rate
    assert (never.low, never.high) == (0.0, 0.4345)


def test_pass_hat_is_the_mean_over_tapes_and_not_over_replays():
    found = results(*case_of("a", "passed", "passed"), *case_of("b", "passed", "broken")).pass_rate
    assert found.rate == 0.75
    assert found.pass_hat == (0.75, 0.5)


@pytest.mark.parametrize(
    ("outcomes", "least", "code"),
    [
        (["passed", "passed", "diverged"], 0.66, 0),
        (["passed", "passed", "diverged"], 0.6667, 3),
        (["passed", "broken"], 0.5, 0),
        (["passed", "error"], 0.9, 1),
        (["passed"] * 9 + ["diverged"], 0.9, 0),
        (["passed", "unusable"], 0.9, 4),
        (["unusable"], 0.0, 4),
        ([], 0.9, 0),
        (["broken"], None, 5),
    ],
)
def test_a_minimum_pass_rate_decides_about_failures_but_not_about_unusable_tapes(
    outcomes, least, code
):
    found = [one for at, outcome in enumerate(outcomes) for one in case_of(str(at), outcome)]
    assert results(*found, min_pass_rate=least).exit_code == code


def test_a_merge_decides_by_the_pass_rate_of_all_shards(shards, playhead):
    paths = shards(3)
    ended = playhead("batch", "merge", *paths, "--min-pass-rate", "0.3")
    assert ended.code == 0
    told = " ".join(ended.out.split())
    assert told.startswith("✓ ")
    assert re.search(r"pass rate .*95 % interval .* pass\^5 .*; expected at least 30.0%", told)
    assert playhead("batch", "merge", *paths, "--min-pass-rate", "0.99").code == 3


def started(limit, costs, lanes):
    """How many replays a batch starts, and the reason for its end. The oldest of `lanes` replays ends first."""
    budget = Budget(limit)
    jobs = budget.limit(iter(range(len(costs))))
    running, total = [], 0
    while True:
        while len(running) < lanes and (job := next(jobs, None)) is not None:
            running.append(job)
            total += 1
        if not running:
            return total, budget.stopped
        usd = costs[running.pop(0)]
        figures = {"spent_usd": usd, "unpriced": int(usd is None)}
        budget.book(Verdict(tape="t", name="t", outcome="passed", figures=figures), in_flight=True)


def test_a_budget_is_not_exceeded_by_replays_in_flight():
    for lanes in (1, 2, 8):
        total, why = started(1.0, [0.3] * 10, lanes)
        assert total == 3, lanes
        assert "$0.9000 of $1 are spent" in why
    assert started(3.0, [0.3] * 10, 4) == (10, None)
    assert started(None, [0.3] * 10, 4) == (10, None)


def test_a_replay_that_is_answered_from_the_tape_costs_nothing():
    assert started(0.01, [0.0] * 10, 4) == (10, None)


def test_a_budget_stops_where_a_price_is_unknown():
    total, why = started(1.0, [0.1, None, 0.1, 0.1], 1)
    assert total == 2
    assert "without a known price" in why

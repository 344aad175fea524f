import json

import pytest

from playhead.testing import Reply, Usage


@pytest.fixture
def runs(forge):
    good = forge("good", tags={"env": "ci"})
    good.llm("Where is the parcel?", Reply(text="On its way.", usage=Usage(input=9, output=9)))
    good.end()
    bad = forge("bad")
    bad.tool("issue_refund", {"order": 7}, error=ValueError("rate limit reached"))
    bad.end("failed", ValueError("rate limit reached"))


def test_a_hit_is_shown_with_its_run_and_the_words_around_it(runs, store, playhead):
    ended = playhead("search", "rate", "limit", "--store", store)
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert lines[0].startswith("✗ bad  refund-agent")
    assert lines[1].split(maxsplit=1) == ["error", "ValueError: rate limit reached"]
    assert lines[2] == "1 run"


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (["parcel", "--in", "prompt"], ["good"]),
        (["parcel", "--in", "response"], []),
        (["rate limit"], ["bad"]),
        (["limit rate"], []),
        (["limit", "rate"], ["bad"]),
        (['"rate limit" refund'], ["bad"]),
        (["refund", "--status", "failed"], ["bad"]),
        (["refund", "--tag", "env=ci"], ["good"]),
        (["refund", "--tool", "issue*"], ["bad"]),
        (["refund", "--model", "claude-*"], ["good"]),
        (["refund*", "--sort", "name", "--limit", "1"], ["bad"]),
    ],
)
def test_words_and_filters_hold_together(runs, store, playhead, asked, found):
    ended = playhead("search", *asked, "--json", "--store", store)
    assert [row["id"] for row in json.loads(ended.out)["runs"]] == found


def test_only_this_project_is_searched_unless_all_are_asked_for(runs, store, playhead, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_HOME", str(store))
    ended = playhead("search", "parcel")
    assert ended.code == 0
    assert "No run matches in this project (--all" in ended.out
    assert "1 run" in playhead("search", "parcel", "--all").out


def test_a_tape_drives_no_terminal(forge, store, playhead):
    tape = forge("run", name="x\x1b]0;owned\x07")
    tape.tool("owl", {"n": "\x1b[31mred pelican\x9b"})
    tape.end()
    ended = playhead("search", "pelican", "--store", store)
    assert "red pelican" in ended.out
    assert not set("\x1b\x07\x9b") & set(ended.out)
    assert max(map(len, ended.out.splitlines())) <= 80


@pytest.mark.parametrize(
    "asked", [[], ["(("], ["x", "--in", "nowhere"], ["x", "--sort", "mood"], ["x", "--cursor", "y"]]
)
def test_what_cannot_be_searched_is_a_usage_error(runs, store, playhead, asked):
    ended = playhead("search", *asked, "--store", store)
    assert ended.code == 2
    assert "Traceback" not in ended.err


def test_sums_are_a_table_that_fits_with_bars_and_the_worst_tool(runs, store, playhead):
    ended = playhead("stats", "--by", "tool", "--store", store)
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert lines[0] == "2 runs  ✓ 1 ok  ✗ 1 failed"
    (row,) = [line for line in lines if line.startswith("issue_refund")]
    assert "1 (100 %)" in row
    assert row.endswith("█")
    assert lines[-1].split() == ["issue_refund", "1", "of", "1", "calls", "100", "%"]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("by", ["model", "tool", "day", "name"])
def test_sums_are_json_for_programs(runs, store, playhead, by):
    told = json.loads(playhead("stats", "--by", by, "--json", "--store", store).out)
    assert told["total"]["runs"] == 2
    assert len(told["groups"]) == 1


def test_sums_of_nothing_say_how_to_begin_and_make_no_store(store, playhead):
    ended = playhead("stats", "--all")
    assert ended.code == 0
    assert "playhead record" in ended.out
    assert not (store.parent / "home").exists()


def test_reindex_says_how_many_runs_it_read(runs, store, playhead):
    assert playhead("reindex", "--store", store).out.startswith("Read 2 runs in ")
    assert json.loads(playhead("reindex", "--json", "--store", store).out)["runs"] == 2
    (store / "none").mkdir()
    assert playhead("reindex", "--store", store / "none").out.startswith("Read 0 runs")

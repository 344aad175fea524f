import json
import re

import pytest

from playhead import clock
from playhead.testing import Reply, Usage

DAY = 86_400_000_000_000


def listed(ended):
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def test_runs_come_newest_first_whatever_they_are_called(forge, store, playhead):
    now = clock.wall_ns()
    forge("nightly", started=now - 3 * DAY).end()
    forge("20261115-071105-k3f9", started=now - DAY).end()
    forge("zzz", started=now - 2 * DAY).end()
    rows = listed(playhead("list", "--json", "--store", store))
    assert [row["id"] for row in rows] == ["20261115-071105-k3f9", "zzz", "nightly"]


def test_a_row_says_what_a_run_was_and_what_it_spent(forge, store, playhead):
    tape = forge(tags={"env": "ci"})
    tape.llm("hello", Reply(text="hi", usage=Usage(input=1000, output=100)))
    tape.tool("lookup", {"n": 1}, value=2)
    tape.end()
    (row,) = listed(playhead("list", "--json", "--store", store))
    assert row["id"] == "20261115-071105-k3f9"
    assert row["name"] == "refund-agent"
    assert row["status"] == "ok"
    assert row["started_at"] == "2026-11-15T07:11:05.000000Z"
    assert row["duration_s"] == pytest.approx(1.1)
    assert (row["calls"], row["llm_calls"], row["tool_calls"]) == (2, 1, 1)
    assert (row["tokens"], row["input_tokens"], row["output_tokens"]) == (1100, 1000, 100)
    assert row["cost_usd"] > 0
    assert row["events"] == tape.seq
    assert row["command"] == ["python", "refund_agent.py"]
    assert row["tags"] == {"env": "ci"}


def test_unknown_tokens_and_costs_are_null_and_not_zero(forge, store, playhead):
    forge().end()
    (row,) = listed(playhead("list", "--json", "--store", store))
    assert row["tokens"] is None
    assert row["cost_usd"] is None


def test_only_the_runs_of_this_project_are_listed_unless_all_are_asked_for(
    forge, here, playhead, monkeypatch, store
):
    monkeypatch.setenv("PLAYHEAD_HOME", str(store))
    forge("ours", project=str(here)).end()
    forge("theirs", project="/srv/other").end()
    assert [row["id"] for row in listed(playhead("list", "--json"))] == ["ours"]
    assert len(listed(playhead("list", "--json", "--all"))) == 2
    assert len(listed(playhead("list", "--json", "--store", store))) == 2


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (["--status", "failed"], ["bad"]),
        (["--status", "failed", "--status", "ok"], ["bad", "good"]),
        (["--status", "interrupted"], ["killed"]),
        (["--status", "running"], []),
        (["--tag", "env"], ["bad", "good"]),
        (["--tag", "env=ci"], ["good"]),
        (["--tag", "env=ci", "--tag", "os=linux"], []),
        (["--name", "refund*"], ["bad", "good"]),
        (["--since", "36h"], ["killed"]),
        (["--limit", "1"], ["killed"]),
        (["--limit", "0"], ["killed", "bad", "good"]),
    ],
)
def test_a_filter_leaves_what_fits(forge, store, playhead, asked, found):
    now = clock.wall_ns()
    forge("good", started=now - 3 * DAY, tags={"env": "ci"}).end()
    forge("bad", started=now - 2 * DAY, tags={"env": "prod"}).end("failed", ValueError("no"))
    forge("killed", started=now - DAY, name="nightly")
    rows = listed(playhead("list", "--json", "--store", store, *asked))
    assert [row["id"] for row in rows] == found


def test_a_run_whose_process_is_gone_is_interrupted_and_one_that_lives_is_running(
    forge, store, playhead
):
    forge("gone")
    forge("alive", pid=clock.pid())
    statuses = {
        row["id"]: row["status"] for row in listed(playhead("list", "--json", "--store", store))
    }
    assert statuses == {"gone": "interrupted", "alive": "running"}


def test_a_run_that_changes_is_read_again_and_others_are_remembered(forge, store, playhead):
    tape = forge()
    tape.tool("lookup", {})
    (before,) = listed(playhead("list", "--json", "--store", store))
    tape.tool("lookup", {})
    (after,) = listed(playhead("list", "--json", "--store", store))
    tape.end()
    (ended,) = listed(playhead("list", "--json", "--store", store))
    assert [before["calls"], after["calls"], ended["calls"]] == [1, 2, 2]
    assert [before["status"], ended["status"]] == ["interrupted", "ok"]


def test_a_new_price_is_a_new_cost(forge, store, here, playhead):
    tape = forge()
    tape.llm("hello", Reply(text="hi", usage=Usage(input=1_000_000, output=0)))
    tape.end()
    (before,) = listed(playhead("list", "--json", "--store", store))
    (here / "playhead.toml").write_text('[prices."claude-*"]\ninput = 7.0\noutput = 1.0\n')
    (after,) = listed(playhead("list", "--json", "--store", store))
    assert after["cost_usd"] == pytest.approx(7.0)
    assert before["cost_usd"] != after["cost_usd"]


def test_a_run_that_was_deleted_is_gone_from_the_list(forge, store, playhead):
    forge("one").end()
    gone = forge("two").end()
    assert len(listed(playhead("list", "--json", "--store", store))) == 2
    for file in gone.iterdir():
        file.unlink()
    gone.rmdir()
    assert [row["id"] for row in listed(playhead("list", "--json", "--store", store))] == ["one"]


def test_a_manifest_that_cannot_be_read_is_a_row_that_says_so(forge, store, playhead):
    path = forge("broken").end()
    (path / "manifest.json").write_text("{")
    ended = playhead("list", "--store", store)
    assert ended.code == 0
    assert "broken" in ended.out
    assert "playhead repair" in ended.out
    (row,) = listed(playhead("list", "--json", "--store", store))
    assert "cannot be read" in row["problem"]


@pytest.mark.parametrize("damage", [b"", b"no database at all" * 100])
def test_a_damaged_library_is_made_anew(forge, store, playhead, damage):
    forge().end()
    playhead("list", "--store", store)
    (store / "library.db").write_bytes(damage)
    assert len(listed(playhead("list", "--json", "--store", store))) == 1
    (store / "library.db").unlink()
    assert len(listed(playhead("list", "--json", "--store", store))) == 1


def test_a_library_that_cannot_be_written_is_done_without(forge, store, playhead):
    forge().end()
    (store / "library.db").mkdir()
    assert len(listed(playhead("list", "--json", "--store", store))) == 1


@pytest.mark.parametrize("asked", [["--name", "nope"], ["--failed-turns"], ["--tag", "="]])
def test_options_that_no_run_matches_are_named_as_the_reason(forge, store, playhead, asked):
    forge("good").end()
    ended = playhead("list", "--store", store, *asked)
    assert "matches these options" in ended.out
    assert "Record one" not in ended.out


def test_an_empty_store_says_how_to_begin_and_is_not_made(store, playhead):
    ended = playhead("list", "--all")
    assert ended.code == 0
    assert "playhead record" in ended.out
    assert not (store.parent / "home").exists()


@pytest.mark.parametrize(
    "verb", ["list", "search x", "stats", "show", "verify", "prune --keep 1", "rm x"]
)
def test_a_store_that_is_not_there_is_a_usage_error(store, playhead, verb):
    ended = playhead(*verb.split(), "--store", store)
    assert ended.code == 2
    assert f"There is no folder {store}." in ended.err
    assert not store.exists()


def test_the_table_fits_eighty_columns(forge, store, playhead):
    tape = forge("x" * 20, name="a-name-that-is-much-too-long-for-a-column")
    tape.llm("hello", Reply(text="hi", usage=Usage(input=123_456_789, output=98_765_432)))
    tape.end("failed", ValueError("because " * 40))
    lines = playhead("list", "--store", store).out.splitlines()
    assert len(lines) == 2
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in "".join(lines)


def test_a_replay_is_shown_when_it_is_asked_for_and_marked(forge, store, playhead):
    forge("again", replay_of="first").end()
    assert "again" not in playhead("list", "--store", store).out
    assert "↻ refund-agent" in playhead("list", "--replays", "--store", store).out


def test_replays_and_forks_stand_below_their_parents(forge, store, playhead, monkeypatch):
    forge("first").end()
    forge("replay", replay_of="first").end()
    forge("sprout", extra={"forked_from": "replay", "forked_at": 3}).end()
    forge("orphan", replay_of="gone").end()
    lines = playhead("list", "--tree", "--store", store).out.splitlines()
    drawn = {re.split("[✓?] ", line)[1].split()[0]: line for line in lines}
    assert drawn["first"].startswith("✓ first")
    assert drawn["replay"].startswith("└ ? replay")
    assert drawn["sprout"].startswith("  └ ✓ sprout")
    assert "fork at 3" in drawn["sprout"]
    assert drawn["orphan"].startswith("? orphan")
    assert max(map(len, lines)) <= 80
    monkeypatch.setenv("COLUMNS", "60")
    narrow = playhead("list", "--tree", "--store", store).out.splitlines()
    assert max(map(len, narrow)) <= 60
    assert any(line.rstrip().endswith("fork at 3") for line in narrow)


def test_runs_that_call_each_other_their_parents_are_no_endless_tree(forge, store, playhead):
    forge("egg", replay_of="hen").end()
    forge("hen", replay_of="egg").end()
    shown = playhead("list", "--tree", "--store", store).out
    assert "egg" in shown
    assert "hen" in shown


@pytest.mark.parametrize("asked", [["--since", "soon"], ["--status", "fine"], ["--limit", "-1"]])
def test_what_cannot_be_asked_is_a_usage_error(playhead, asked):
    ended = playhead("list", *asked)
    assert ended.code == 2
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("option", ["--replays", "--tree"])
def test_a_replay_is_listed_with_its_verdict_not_with_the_status_of_its_program(
    playhead, forge, store, option
):
    marks = {"identical": "✓", "recovered": "✓", "diverged": "✗", "unproven": "?"}
    forge("first").end()
    for verdict in marks:
        forge(f"a-{verdict[:3]}", replay_of="first", extra={"verdict": verdict}).end("ok")
    listed = playhead("list", "--store", store, option).out.splitlines()
    rows = json.loads(playhead("list", "--store", store, "--replays", "--json").out)
    for verdict, mark in marks.items():
        (line,) = [one for one in listed if f"a-{verdict[:3]}" in one]
        assert mark in line
        assert ("✓" in line) is (mark == "✓")
        assert verdict in line or option == "--replays"
        assert [row["verdict"] for row in rows if row["id"] == f"a-{verdict[:3]}"] == [verdict]

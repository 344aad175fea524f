"""push, pull, list --remote, prune --remote, and reading runs that only the shared store has."""

import json

import pytest

from playhead import clock
from playhead.remote.upload_state import RunUpload, note_upload

DAY = 86_400_000_000_000


@pytest.fixture
def shared(tmp_path, monkeypatch):
    """A folder as the shared store of this user."""
    monkeypatch.setenv("PLAYHEAD_REMOTE", f"file://{tmp_path}/shared")
    return f"file://{tmp_path}/shared"


@pytest.fixture
def three(forge, store, shared, playhead):
    now = clock.wall_ns()
    for days, name in ((9, "old"), (5, "kept"), (1, "new")):
        tape = forge(f"2026-{name}", name=name, tags={"env": "ci"}, started=now - days * DAY)
        tape.tool("lookup", {"order": name})
        tape.end()
    playhead("keep", "2026-kept", "--store", store)
    ended = playhead("push", "2026-old", "2026-kept", "2026-new", "--store", store)
    assert ended.code == 0, ended.err
    return ended


def ids(ended):
    assert ended.code == 0, ended.err
    return [one["id"] for one in json.loads(ended.out)]


def test_pushed_runs_are_listed_shown_and_pulled_by_another_user(three, shared, playhead):
    assert three.out.count(f"→ {shared}") == 3
    ended = playhead("list", "--remote")
    assert [line.split()[0] for line in ended.out.splitlines()] == [
        "2026-old",
        "2026-new",
        "2026-kept",
    ]
    assert json.loads(playhead("list", "--json", "--all").out) == []
    shown = playhead("show", "2026-new")
    assert shown.code == 0, shown.err
    assert "lookup" in shown.out
    # Shown, but not kept: it is in a cache.
    assert json.loads(playhead("list", "--json", "--all").out) == []
    assert playhead("pull", "2026-n").code == 0
    (row,) = json.loads(playhead("list", "--json", "--all").out)
    assert (row["id"], row["upload"], row["pulled_from"]) == ("2026-new", "pushed", shared)
    assert "2026-new" in playhead("list", "--remote", "--name", "n*").out
    pulled = playhead("pull", "--all", "--json")
    assert [one["run"] for one in json.loads(pulled.out)] == ["2026-old", "2026-kept"]
    assert "All runs of" in playhead("pull", "--all").out


def test_filters_of_a_batch_select_runs_of_the_shared_store(three, shared, playhead):
    assert playhead("batch", "name:n*", "--dry-run").code == 2
    assert playhead("batch", "name:n*", "--dry-run", "--remote").out.split()[0] == "2026-new"
    parts = [
        playhead("batch", "since:300d", "--shard", f"{n}/3", "--dry-run", "--remote", shared)
        for n in (1, 2, 3)
    ]
    keys = sorted(line.split()[0] for one in parts for line in one.out.splitlines())
    assert keys == ["2026-kept", "2026-new", "2026-old"]
    ended = playhead("batch", "name:n*", "--remote")
    assert ended.code == 4, ended.err
    assert "Another person recorded 2026-new" in ended.out


def test_the_command_of_a_pulled_run_does_not_run_unasked(three, playhead):
    for words in (["2026-new"], ["--all"]):
        ended = playhead("replay", "2026-new")
        assert ended.code == 4
        assert "Another person recorded 2026-new" in ended.err
        assert playhead("pull", *words).code == 0


def test_pruning_there_keeps_what_is_kept_and_needs_a_rule(three, store, shared, playhead):
    assert playhead("prune", "--remote").code == 2
    plan = playhead("prune", "--remote", "--older-than", "2d", "--json", "--dry-run")
    assert ids_of_plan(plan) == ["2026-old"]
    assert "--yes" in playhead("prune", "--remote", "--older-than", "2d").err
    none = playhead("prune", "--remote", "--keep", "0", "--tag", "env=dev", "--yes", "--json")
    assert ids_of_plan(none) == []
    ended = playhead("prune", "--remote", shared, "--keep", "0", "--yes")
    assert "Deleted 2 runs" in ended.out
    assert ids(playhead("list", "--remote", "--json")) == ["2026-kept"]


def ids_of_plan(ended):
    assert ended.code == 0, ended.err
    return [one["id"] for one in json.loads(ended.out)["runs"]]


def test_a_list_says_what_is_not_up_yet_and_push_pending_sends_it(
    forge, store, shared, playhead, tmp_path
):
    forge("2026-first").end()
    note_upload(store, "2026-first", RunUpload(state="pending", remote=shared))
    ended = playhead("list", "--store", store)
    assert "1 run is not pushed yet: playhead push --pending" in ended.err
    assert json.loads(playhead("list", "--store", store, "--json").out)[0]["upload"] == "pending"
    (tmp_path / "shared").write_text("a file in its place")
    failed = playhead("push", "--pending", "--store", store)
    assert failed.code == 1
    assert "Traceback" not in failed.err
    (tmp_path / "shared").unlink()
    assert playhead("push", "--pending", "--store", store, "--json").code == 0
    assert playhead("list", "--store", store).err == ""
    assert playhead("push", "--pending", "--store", store, "--json").out == "[]\n"


def test_mistakes_are_said_in_one_line(forge, store, here, playhead, tmp_path):
    forge("2026-first").end()
    for words, said in (
        (["push", "2026-first", "--store", store], "No shared store is configured"),
        (["record", "--push", "--", "true"], "--push needs a shared store"),
        (["push", "x", "--store", store, "--remote", "ftp://x"], "No run is called 'x'"),
        (["push", "2026-first", "--store", store, "--remote", "ftp://x"], "is not a shared store"),
        (["pull", "--remote", f"file://{tmp_path}/none"], "Name the runs to pull"),
        (["pull", "x", "--remote", f"file://{tmp_path}/none"], "there is no such folder"),
        (["list", "--remote"], "No shared store is configured"),
    ):
        ended = playhead(*words)
        assert ended.code in (1, 2), words
        assert said in " ".join(ended.err.split()), words
    (here / "playhead.toml").write_text('[store]\nremote = "file:///nowhere/at/all"\n')
    ended = playhead("show", "2026-other")
    assert "file:///nowhere/at/all: there is no such folder" in ended.err
    (here / "playhead.toml").write_text("[store]\nremot = 1\n")
    assert "Did you mean 'store.remote'?" in playhead("list").err
    assert playhead("config").code == 2


def test_the_config_names_the_store_and_the_shared_one(here, playhead, monkeypatch):
    monkeypatch.delenv("PLAYHEAD_HOME")
    (here / "playhead.toml").write_text('[store]\npath = "tapes"\nremote = "s3://tapes/shop"\n')
    told = json.loads(playhead("config", "--json").out)["settings"]
    assert told["store"]["value"] == str(here / "tapes")
    assert told["store.remote"] == {"value": "s3://tapes/shop", "from": str(here / "playhead.toml")}

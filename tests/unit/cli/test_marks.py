import io
import json
import subprocess
import sys

import pytest

from playhead import clock


@pytest.fixture
def run(forge):
    return forge("run", tags={"env": "ci"}).end()


def listed(playhead, store):
    (row,) = json.loads(playhead("list", "--json", "--store", store).out)
    return row


def test_tags_are_added_and_taken_away(run, store, playhead):
    ended = playhead("tag", "run", "reviewed", "env=prod", "--store", store)
    assert ended.out.splitlines() == ["env=prod", "reviewed=true"]
    assert listed(playhead, store)["tags"] == {"env": "prod", "reviewed": "true"}
    ended = playhead("tag", "run", "--remove", "env", "--json", "--store", store)
    assert json.loads(ended.out) == {"reviewed": "true"}
    assert playhead("tag", "run", "--store", store).out == "reviewed=true\n"
    assert playhead("list", "--tag", "reviewed", "--store", store).out.count("run") == 1


def test_removing_a_tag_that_is_not_there_is_a_usage_error_that_names_the_tags(
    run, store, playhead
):
    ended = playhead("tag", "run", "--remove", "nope", "--store", store)
    assert ended.code == 2
    assert "run has no tag 'nope'. Its tags: env." in ended.err
    assert listed(playhead, store)["tags"] == {"env": "ci"}


def test_a_tag_without_a_name_is_a_usage_error(run, store, playhead):
    assert playhead("tag", "run", "=x", "--store", store).code == 2


def test_a_note_is_written_shown_and_taken_away(run, store, playhead, monkeypatch):
    assert playhead("note", "run", "--store", store).out == "run has no note.\n"
    playhead("note", "run", "Refunds", "twice.", "--store", store)
    assert playhead("note", "run", "--store", store).out == "Refunds twice.\n"
    assert listed(playhead, store)["note"] == "Refunds twice."
    assert "  note: Refunds twice.\n" in playhead("show", "run", "--store", store).out
    monkeypatch.setattr("sys.stdin", io.StringIO("from a\npipe\n"))
    playhead("note", "run", "-", "--store", store)
    told = json.loads(playhead("note", "run", "--json", "--store", store).out)
    assert told == {"id": "run", "note": "from a\npipe"}
    assert playhead("note", "run", "--remove", "--store", store).out == "run has no note.\n"


def test_a_run_is_called_something_else_and_found_by_it(run, store, playhead):
    ended = playhead("rename", "run", "refund-twice", "--store", store)
    assert ended.out == "run is now named refund-twice.\n"
    assert listed(playhead, store)["name"] == "refund-twice"
    assert "refund-twice" in playhead("show", "run", "--store", store).out
    assert playhead("rename", "run", " ", "--store", store).code == 2


def test_a_live_run_is_kept_and_stays_kept_when_it_ends(forge, store, playhead):
    tape = forge("alive", pid=clock.pid())
    assert playhead("keep", "alive", "--store", store).out == "alive is kept.\n"
    tape.end()
    assert listed(playhead, store)["keep"] is True
    playhead("prune", "--keep", "0", "--yes", "--store", store)
    assert listed(playhead, store)["id"] == "alive"
    playhead("keep", "alive", "--undo", "--store", store)
    assert listed(playhead, store)["keep"] is False


def record(store, here, *words):
    argv = [sys.executable, "-m", "playhead", "record", "--store", str(store), *words]
    return subprocess.run(argv, cwd=here, capture_output=True, text=True, check=False, timeout=60)


def test_retention_holds_after_a_recording_where_the_config_asks(forge, store, here, playhead):
    forge("old", started=1, project=str(here)).end()
    forge("kept", started=2, project=str(here), keep=True).end()
    forge("theirs", started=3, project="/srv/other").end()
    (here / "playhead.toml").write_text("[retention]\nkeep = 1\nauto = true\n")
    ended = record(store, here, "--name", "new", "--", "true")
    assert ended.returncode == 0
    assert "pruned 1 run" in ended.stderr
    rows = json.loads(playhead("list", "--json", "--limit", "0", "--store", store).out)
    assert [row["name"] for row in rows] == ["new", "refund-agent", "refund-agent"]
    assert [row["id"] for row in rows[1:]] == ["theirs", "kept"]


def test_retention_that_cannot_be_is_said_and_changes_no_exit_code(store, here, playhead):
    (here / "playhead.toml").write_text("[retention]\nauto = true\nolder_than = 'soon'\n")
    ended = record(store, here, "--", "sh", "-c", "exit 7")
    assert ended.returncode == 7
    assert "could not prune old runs" in ended.stderr
    assert playhead("prune", "--store", store).code == 2


def test_a_recording_that_ended_is_in_the_catalogue_already(store, here, playhead, monkeypatch):
    record(store, here, "--", "true")
    monkeypatch.setattr(
        "playhead.library.digest.summarise", lambda *_, **__: pytest.fail("it was read again")
    )
    assert listed(playhead, store)["status"] == "ok"

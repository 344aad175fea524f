"""`playhead clean`: replays go, everything else stays."""

import io
import json

import pytest

from playhead import clock


@pytest.fixture
def family(forge):
    forge("first", tags={"golden": "true"}).end()
    forge("replay-1", replay_of="first", tags={"golden": "true"}).end()
    forge("replay-2", replay_of="first").end("failed", ValueError("no"))
    forge("replay-kept", replay_of="first", keep=True).end()
    forge("replay-now", replay_of="first", pid=clock.pid())
    forge(
        "replay-golden", replay_of="first", tags={"golden": "true"}, extra={"supersedes": ["first"]}
    ).end()
    forge("sprout", extra={"forked_from": "first", "forked_at": 3}).end()


STAY = ["first", "replay-golden", "replay-kept", "replay-now", "sprout"]


def left(store):
    return sorted(path.name for path in (store / "runs").iterdir())


def test_replays_go_and_runs_forks_kept_golden_and_running_ones_stay(family, store, playhead):
    ended = playhead("clean", "--yes", "--store", store)
    assert ended.out.startswith("Deleted 2 runs (")
    assert left(store) == STAY


def test_a_dry_run_says_what_would_go_and_deletes_nothing(family, store, playhead):
    told = playhead("clean", "--dry-run", "--store", store).out
    assert "replay-1" in told
    assert "Would delete 2 runs" in told
    found = json.loads(playhead("clean", "--dry-run", "--json", "--store", store).out)
    assert (found["dry_run"], found["runs"]) == (True, ["replay-1", "replay-2"])
    assert len(left(store)) == 7


def test_a_script_has_to_say_yes(family, store, playhead, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    ended = playhead("clean", "--store", store)
    assert ended.code == 2
    assert "--yes" in ended.err
    assert len(left(store)) == 7


def test_nothing_to_do_is_no_error(store, playhead):
    store.mkdir()
    assert playhead("clean", "--yes", "--store", store).out == "Deleted 0 runs (0 B).\n"

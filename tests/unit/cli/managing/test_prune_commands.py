import json

import pytest

from playhead import clock

DAY = 86_400_000_000_000


@pytest.fixture
def five(forge):
    """Five runs of one, two… five days; the third goes on, the fourth is kept."""
    now = clock.wall_ns()
    forge("day1", started=now - 1 * DAY).end()
    forge("day2", started=now - 2 * DAY).end("failed", ValueError("no"))
    forge("day3", started=now - 3 * DAY, pid=clock.pid())
    forge("day4", started=now - 4 * DAY, keep=True).end()
    forge("day5", started=now - 5 * DAY)


def left(store):
    return sorted(path.name for path in (store / "runs").iterdir())


def would_go(ended):
    assert ended.code == 0, ended.err
    return [row["id"] for row in json.loads(ended.out)["runs"]]


@pytest.mark.parametrize(
    ("rules", "gone"),
    [
        (["--older-than", "36h"], ["day5", "day2"]),
        (["--keep", "1"], ["day5", "day2"]),
        (["--keep", "0"], ["day5", "day2", "day1"]),
        (["--older-than", "1h", "--keep", "2"], ["day5"]),
        (["--max-size", "0"], ["day5", "day2", "day1"]),
        (["--max-size", "1GB"], []),
        (["--older-than", "30d"], []),
    ],
)
def test_rules_say_what_may_go_and_never_touch_a_running_or_kept_run(
    five, store, playhead, rules, gone
):
    ended = playhead("prune", *rules, "--dry-run", "--json", "--store", store)
    assert would_go(ended) == gone
    assert len(left(store)) == 5
    playhead("prune", *rules, "--yes", "--store", store)
    assert left(store) == sorted({"day1", "day2", "day3", "day4", "day5"} - set(gone))


def test_what_would_go_and_what_went_is_said_with_its_size(five, store, playhead):
    planned = playhead("prune", "--keep", "1", "--dry-run", "--store", store).out
    assert "day5" in planned
    assert "too many" in planned
    assert "Would delete 2 runs (" in planned
    done = playhead("prune", "--keep", "1", "--yes", "--store", store).out
    assert done.startswith("Deleted 2 runs (")
    assert list(store.glob(".trash*")) == []


def test_a_script_must_say_yes(five, store, playhead):
    ended = playhead("prune", "--keep", "1", "--store", store)
    assert ended.code == 2
    assert "--yes" in ended.err
    assert len(left(store)) == 5


@pytest.mark.parametrize("answer", ["y", "n", ""])
def test_a_person_is_asked(five, store, playhead, monkeypatch, answer):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: _answer(answer))
    gone = 2 if answer == "y" else 0
    ended = playhead("prune", "--keep", "1", "--store", store)
    assert "day5" in ended.out
    assert ended.code == (0 if gone else 130)
    assert len(left(store)) == 5 - gone


def _answer(answer):
    if not answer:
        raise EOFError
    return answer


def test_without_a_rule_nothing_goes_unless_the_config_has_one(five, store, playhead, here):
    ended = playhead("prune", "--yes", "--store", store)
    assert ended.code == 2
    assert "--older-than" in ended.err
    (here / "playhead.toml").write_text('[retention]\nolder_than = "36h"\n')
    ended = playhead("prune", "--dry-run", "--json", "--store", store)
    assert would_go(ended) == ["day5", "day2"]
    (here / "playhead.toml").write_text('[retention]\nmax_size = "huge"\n')
    ended = playhead("prune", "--dry-run", "--store", store)
    assert ended.code == 2
    assert "playhead.toml" in ended.err


def test_only_this_projects_runs_go(forge, store, here, playhead, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_HOME", str(store))
    forge("ours", project=str(here)).end()
    forge("theirs", project="/srv/other").end()
    playhead("prune", "--keep", "0", "--yes")
    assert left(store) == ["theirs"]
    playhead("prune", "--keep", "0", "--yes", "--all")
    assert left(store) == []


def test_what_an_interrupted_prune_left_is_cleared_by_the_next(forge, store, playhead):
    forge("young", started=clock.wall_ns()).end()
    rubbish = store / ".trash-20261101T000000-4194999" / "half"
    rubbish.mkdir(parents=True)
    (rubbish / "tape-1.jsonl").write_bytes(b"x" * 1000)
    at_work = store / f".trash-20261101T000000-{clock.pid()}"
    at_work.mkdir()
    out = playhead("prune", "--older-than", "1d", "--yes", "--store", store).out
    assert "1.0 KB left over from an interrupted prune" in out
    assert not rubbish.parent.exists()
    assert at_work.exists()
    assert left(store) == ["young"]

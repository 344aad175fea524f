"""How a RUN is named on the command line."""

import json
import subprocess
import sys

import click
import pytest

from playhead.cli.run_names import note_import
from playhead.cli.watching.show_command import command


@pytest.fixture
def three(forge):
    forge("20261101-000000-aaaa", name="simple.py").end()
    forge("20261102-000000-bbbb", name="simple.py").end()
    forge("20261103-000000-cccc", name="other.py").end()


def in_process_of_its_own(*words):
    """A replay starts programs, and ends with its process."""
    argv = [sys.executable, "-m", "playhead", *map(str, words)]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "verb", ["show", "events", "verify", "play --speed 100", "export --story s.json"]
)
def test_without_a_run_a_verb_takes_the_last(three, store, playhead, verb):
    ended = playhead(*verb.split(), "--store", store)
    assert ended.code == 0, ended.err


def test_show_without_a_run_shows_the_newest(three, store, playhead):
    assert "20261103-000000-cccc" in playhead("show", "-s", store).out


def test_a_name_means_the_newest_run_of_that_name_and_says_that_there_are_several(
    three, store, playhead
):
    ended = playhead("show", "simple.py", "--store", store)
    assert "20261102-000000-bbbb" in ended.out
    assert "2 runs are named simple.py; this is the newest, 20261102-000000-bbbb." in ended.err
    alone = playhead("show", "other.py", "--store", store)
    assert alone.err == ""


def test_the_last_run_is_what_was_just_imported(three, forge, store, playhead):
    for day, name in ((1, "older"), (2, "newer")):
        forge(f"2025010{day}-000000-dddd", name=name, started=day * 10**15).end()
    note_import(store, ["20250101-000000-dddd", "20250102-000000-dddd"], 1_900_000_000_000_000_000)
    for asked, name in (("last", "newer"), ("last~1", "older"), ("last~2", "other.py")):
        assert name in playhead("show", asked, "-s", store).out
    playhead("rm", "last", "--yes", "-s", store)
    assert "older" in playhead("show", "-s", store).out


def test_names_and_ids_are_completed(three, store, monkeypatch):
    context = click.Context(command)
    context.params["store"] = str(store)
    (run,) = [one for one in command.params if one.name == "run"]
    assert [one.value for one in run.shell_complete(context, "sim")] == ["simple.py"]
    ids = [one.value for one in run.shell_complete(context, "202611")]
    assert ids == ["20261103-000000-cccc", "20261102-000000-bbbb", "20261101-000000-aaaa"]


def test_a_name_with_wildcards_means_itself(forge, store, playhead):
    forge("20261101-000000-aaaa", name="fix [a*]").end()
    forge("20261102-000000-bbbb", name="fix a").end()
    assert "-aaaa" in playhead("show", "fix [a*]", "--store", store).out
    assert playhead("show", "fix *", "--store", store).code == 2


def test_an_unknown_name_is_a_usage_error(three, store, playhead):
    ended = playhead("show", "nothing.py", "--store", store)
    assert ended.code == 2
    assert "nothing.py" in ended.err


def test_a_name_of_another_project_is_reported_with_the_id_of_its_run(
    three, store, playhead, monkeypatch, tmp_path
):
    monkeypatch.setenv("PLAYHEAD_HOME", str(store))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    ended = playhead("show", "simple.py")
    assert ended.code == 2
    assert "No run of this project is named 'simple.py'." in ended.err
    assert "20261102-000000-bbbb" in ended.err


@pytest.mark.parametrize("verb", ["rename last better", "keep last", "keep last --undo"])
def test_small_changes_are_printed_as_json(three, store, playhead, verb):
    answer = json.loads(playhead(*verb.split(), "--json", "--store", store).out)
    assert answer["id"] == "20261103-000000-cccc"


@pytest.mark.parametrize("verb", ["replay", "fork --at 1", "chaos"])
def test_what_follows_two_dashes_is_never_the_run(three, store, here, verb):
    ended = in_process_of_its_own(*verb.split(), "--store", store, "--", "other-program", "x")
    assert "No run is called" not in ended.stderr


def test_a_replay_whose_command_cannot_be_started_is_never_identical(three, store, here):
    # This run was recorded in its own process and has no exit code to compare.
    ended = in_process_of_its_own("replay", "--store", store, "--", "no-such-program")
    assert ended.returncode == 3
    assert "identical" not in ended.stderr
    assert "Exit code: none recorded, 127 replayed." in ended.stderr


def test_rm_deletes_what_is_named_and_nothing_else(three, store, playhead):
    ended = playhead("rm", "simple.py", "20261103", "--yes", "--json", "--store", store)
    gone = ["20261102-000000-bbbb", "20261103-000000-cccc"]
    assert json.loads(ended.out)["deleted"] == gone
    (left,) = json.loads(playhead("list", "--json", "--store", store).out)
    assert left["id"] == "20261101-000000-aaaa"


def test_rm_without_a_terminal_needs_yes(three, store, playhead, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    ended = playhead("rm", "last", "--store", store)
    assert ended.code == 2
    assert "--yes" in ended.err
    assert len(json.loads(playhead("list", "--json", "--store", store).out)) == 3


def test_rm_refuses_a_kept_run_and_says_how_to_allow_it(three, store, playhead):
    playhead("keep", "last", "--store", store)
    ended = playhead("rm", "last~1", "last", "--yes", "--store", store)
    assert ended.code == 2
    assert "playhead keep 20261103-000000-cccc --undo" in ended.err
    assert len(json.loads(playhead("list", "--json", "--store", store).out)) == 3


def test_rm_without_a_run_deletes_nothing(three, store, playhead):
    assert playhead("rm", "--yes", "--store", store).code == 2


def test_the_table_fits_sixty_columns_and_a_pipe_follows_columns(
    three, store, playhead, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "60")
    lines = playhead("list", "--store", store).out.splitlines()
    assert len(lines) == 4
    assert max(map(len, lines)) <= 60
    assert "COST" in lines[0]
    monkeypatch.setenv("COLUMNS", "100")
    assert "TOKENS" in playhead("list", "--store", store).out


def test_config_says_where_each_setting_comes_from(here, playhead, monkeypatch):
    (here / "playhead.toml").write_text('level = "standard"\nname = "a"\n[retention]\nkeep = 3\n')
    monkeypatch.setenv("PLAYHEAD_LEVEL", "minimal")
    told = json.loads(playhead("config", "--json").out)
    file = str(here / "playhead.toml")
    assert told["file"] == file
    assert told["settings"]["level"] == {"value": "minimal", "from": "PLAYHEAD_LEVEL"}
    assert told["settings"]["name"] == {"value": "a", "from": file}
    assert told["settings"]["[retention]"] == {"value": {"keep": 3}, "from": file}
    assert told["settings"]["shim_mounts"] == {"value": False, "from": "default"}
    text = playhead("config").out
    assert f"config file: {file}" in text
    assert "keep = 3" in text

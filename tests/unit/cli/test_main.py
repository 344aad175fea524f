"""What all verbs have in common: how a run is named, how errors leave, what is imported."""

import os
import subprocess
import sys

import pytest

from playhead import clock
from playhead.cli import VERBS
from playhead.tape.format import FORMAT_VERSION

DAY = 86_400_000_000_000


@pytest.fixture
def three(forge):
    now = clock.wall_ns()
    for number, run_id in enumerate(("aaa-1", "aab-2", "bbb-3")):
        forge(run_id, started=now - (9 - number) * DAY).end()


@pytest.mark.parametrize(
    ("asked", "found"),
    [("last", "bbb-3"), ("last~2", "aaa-1"), ("aab-2", "aab-2"), ("b", "bbb-3"), ("aaa", "aaa-1")],
)
def test_a_run_is_named_by_id_prefix_or_place(three, store, playhead, asked, found):
    ended = playhead("show", asked, "--store", store)
    assert ended.code == 0
    assert found in ended.out


def test_a_run_is_named_by_its_folder(three, store, playhead):
    assert playhead("show", store / "runs" / "aab-2").code == 0


def test_a_closed_stdout_is_no_error(three, store):
    script = f'exec "{sys.executable}" -m playhead list --store "{store}" >&-'
    done = subprocess.run(["sh", "-c", script], stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("aa", "beginning of 2 runs"),
        ("last~3", "There is no run 'last~3'"),
        ("ccc", "No run is called 'ccc'"),
        ("./nowhere", "There is no file or folder ./nowhere."),
    ],
)
def test_a_name_that_is_no_run_is_a_usage_error(three, store, playhead, asked, said):
    ended = playhead("show", asked, "--store", store)
    assert ended.code == 2
    assert ended.err.startswith("playhead: ")
    assert said in ended.err
    assert len(ended.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show", "--bogus"], "No such option '--bogus'."),
        (["play", "--speed", "x"], "Invalid value for '--speed': 'x' is not a number."),
        (["list", "-n", "x"], "Invalid value for '--limit' / '-n': 'x' is not a whole number."),
        (["recrod"], "No such command 'recrod'. Did you mean 'record'?"),
    ],
)
def test_a_mistake_on_the_command_line_has_the_style_of_every_error(playhead, words, said):
    ended = playhead(*words)
    assert ended.code == 2
    first, usage, more = ended.err.splitlines()
    assert first == f"playhead: {said}"
    assert usage.startswith("Usage: ")
    assert more.endswith("--help` explains it.")


def test_diff_without_runs_compares_the_last_two(three, store, playhead):
    out = playhead("diff", "--store", store).out
    assert "aab-2" in out
    assert "bbb-3" in out
    itself = playhead("diff", "bbb-3", "--store", store)
    assert itself.code == 2
    assert "Both are run bbb-3." in itself.err


def test_last_is_this_projects_and_says_where_others_are(forge, here, store, playhead, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_HOME", str(store))
    forge("theirs", project="/srv/other").end()
    ended = playhead("show", "last")
    assert ended.code == 2
    assert "has 1 of other projects" in ended.err
    forge("ours", project=str(here), started=clock.wall_ns() - 9 * DAY).end()
    assert "ours" in playhead("show", "last").out


def test_a_tape_from_the_future_cannot_be_used_and_says_what_to_do(forge, store, playhead):
    path = forge().end()
    manifest = path / "manifest.json"
    manifest.write_text(manifest.read_text().replace(f'"format": {FORMAT_VERSION}', '"format": 99'))
    for file in path.glob("tape-*"):
        lines = file.read_text().replace(f'"format":{FORMAT_VERSION}', '"format":99')
        file.write_text(lines)
    ended = playhead("show", "last", "--store", store)
    assert ended.code == 4
    assert "format 99" in ended.err
    assert "Upgrade" in ended.err


def test_a_folder_that_cannot_be_read_is_told_in_one_line(store, playhead):
    store.parent.mkdir(exist_ok=True)
    store.write_text("no folder")
    ended = playhead("list", "--store", store / "below")
    assert ended.code == 2
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(playhead, verb):
    ended = playhead(verb, "--help")
    assert ended.code == 0
    assert f"playhead {verb}" in ended.out.partition("Options:")[0].replace("Usage:", "", 1)


def test_a_verb_that_is_mistyped_is_guessed(playhead):
    ended = playhead("shwo", "last")
    assert ended.code == 2
    assert "Did you mean 'show'?" in ended.err


def test_the_overview_names_every_verb_and_the_exit_codes(playhead):
    out = playhead("--help").out
    assert all(f"\n  {verb}" in out for verb in VERBS)
    assert "4 unusable tape" in " ".join(out.split())


def test_a_reader_that_leaves_early_is_no_error(forge, store):
    tape = forge()
    for _ in range(3000):
        tape.tool("lookup", {"words": "x" * 40}, took=0)
    tape.end()
    argv = [sys.executable, "-m", "playhead", "show", "last", "--store", str(store)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        running.stdout.read(100)
        running.stdout.close()
        said = running.stderr.read()
        assert running.wait() == 0
    assert said == b""


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_our_letters_gets_question_marks_and_no_error(forge, store, encoding):
    forge().end()
    argv = [sys.executable, "-m", "playhead", "show", "last", "--store", str(store)]
    environ = {**os.environ, "PYTHONIOENCODING": encoding}
    ended = subprocess.run(argv, env=environ, capture_output=True, check=False)
    assert ended.returncode == 0
    assert b"? refund-agent" in ended.stdout


def test_a_list_as_json_loads_neither_rich_nor_the_model(forge, store):
    forge().end()
    argv = [sys.executable, "-X", "importtime", "-m", "playhead", "list", "--json"]
    argv += ["--store", str(store)]
    subprocess.run(argv, capture_output=True, check=True)
    ended = subprocess.run(argv, capture_output=True, text=True, check=True)
    loaded = {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()}
    assert "playhead.library.catalogue" in loaded
    assert loaded & {"rich.console", "rich.text", "playhead.story", "genai_prices"} == set()


@pytest.mark.parametrize("group", [[], ["session"], ["token"]])
def test_a_group_without_a_command_prints_its_help_alone(playhead, group):
    ended = playhead(*group)
    assert ended.code == 2
    first, *_ = ended.err.splitlines()
    assert first.startswith("Usage: ")
    assert first.endswith(" ".join([*group, "[OPTIONS] COMMAND [ARGS]..."]))
    assert "explains it" not in ended.err


def test_an_error_is_told_whichever_verbs_were_imported_before(playhead):
    for verb in VERBS:
        playhead(verb, "--help")
    ended = playhead("show", "nothing")
    assert ended.code == 2
    assert ended.err.startswith("playhead: No run is called 'nothing'")

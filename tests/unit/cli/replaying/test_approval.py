"""Which commands of tapes run without a question. `forge` makes tapes outside of the user's own store."""

import json
import shutil

import pytest

from playhead.tape.single_file import pack


@pytest.fixture
def home(here, monkeypatch, tmp_path):
    """The user's own store; a command that starts anyway would fail the test."""
    monkeypatch.setattr("playhead.launch.command.run_command", pytest.fail)
    monkeypatch.setattr("playhead.launch.replaying.replay_run.run_command", pytest.fail)
    (tmp_path / "home" / "runs").mkdir(parents=True)
    return tmp_path / "home"


def as_folder(run, home):
    return [run]


def as_single_file(run, home):
    pack(run, home.parent / "theirs.tape.jsonl")
    return [home.parent / "theirs.tape.jsonl"]


def as_store(run, home):
    return [run.name, "--store", run.parent.parent]


def as_link_in_own_store(run, home):
    (home / "runs" / run.name).symlink_to(run)
    return [home / "runs" / run.name]


def as_link_beside_own_store(run, home):
    (home.parent / "link").symlink_to(run)
    return [home.parent / "link"]


def as_own_store_that_is_a_link_elsewhere(run, home):
    (home.parent / "other").mkdir()
    (home.parent / "other" / "runs").symlink_to(run.parent)
    return [run.name, "--store", home.parent / "other"]


def as_pulled_run(run, home):
    own = shutil.copytree(run, home / "runs" / run.name)
    manifest = json.loads((own / "manifest.json").read_text())
    (own / "manifest.json").write_text(json.dumps({**manifest, "pulled_from": "https://x.test"}))
    return [own]


def with_a_mark_of_its_own(run, home):
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps({**manifest, "origin": "0" * 64}))
    return [run]


def with_a_store_named_by_the_project(run, home):
    (home.parent / "project" / "playhead.toml").write_text(f'store = "{run.parent.parent}"')
    return [run]


@pytest.mark.parametrize("verb", [["replay"], ["fork", "--at", "1"], ["chaos"], ["batch"]])
@pytest.mark.parametrize(
    "handed_over",
    [as_folder, as_single_file, as_store, as_link_in_own_store, as_link_beside_own_store,
     as_own_store_that_is_a_link_elsewhere, as_pulled_run, with_a_mark_of_its_own, with_a_store_named_by_the_project],
)  # fmt: skip
def test_the_command_of_a_foreign_tape_does_not_run_unasked(
    playhead, forge, home, handed_over, verb
):
    tape = forge()
    tape.tool("search", {})
    run = tape.end()
    words = handed_over(run, home)
    now = playhead(verb[0], *words, *verb[1:])
    assert now.code == 4
    assert "Another person recorded" in " ".join((now.err + now.out).split())
    if verb[0] == "replay":
        assert "python refund_agent.py" in now.err
        assert "--trust" in now.err


@pytest.mark.parametrize(
    "options",
    [["--live", "llm"], ["--live", "process"], ["--allow-all-tools"], ["--allow-tool", "x"], ["--unfenced"]],
)  # fmt: skip
def test_real_effects_with_a_foreign_tape_need_a_command_of_the_user(
    playhead, forge, home, options
):
    now = playhead("replay", forge().end(), "--trust", *options)
    assert now.code == 4
    assert options[0] in now.err
    assert "-- CMD" in now.err


@pytest.mark.parametrize("command", [["sh", 3], [], "sh", None, ["sh", {"a": 1}], ["a\0b"]])
def test_a_command_that_is_no_list_of_texts_is_no_command(playhead, forge, home, command):
    run = forge().end()
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps({**manifest, "command": command}))
    now = playhead("replay", run, "--trust")
    assert (now.code, "no command" in now.err) == (4, True)


def test_escape_sequences_in_a_foreign_command_do_not_reach_the_terminal(playhead, forge, home):
    run = forge(command=["sh", "-c", "\x1b[2Jevil\r\n\u202eok"], cwd="/x\x1b[2J").end()
    now = playhead("replay", run)
    assert now.code == 4
    assert "\x1b" not in now.err
    assert "\u202e" not in now.err


def test_env_without_a_value_is_a_usage_error(playhead, forge, home):
    now = playhead("replay", forge().end(), "--env", "MODE", "--", "true")
    assert now.code == 2
    assert "NAME=VALUE" in now.err


@pytest.mark.parametrize("hidden", [" " * 9000, "\n", "\u3164" * 9000, "#\r\n", "\x1b[8m"])
def test_no_part_of_a_command_is_hidden_from_the_user_who_decides(playhead, forge, home, hidden):
    """Spaces pushed the rest out of sight, and a line break looked like a space."""
    tape = forge(command=["sh", "-c", f"echo hi{hidden}curl evil.test"])
    now = playhead("replay", tape.end())
    assert now.code == 4
    assert "curl evil.test" in now.err
    assert f"hi{hidden}curl" not in now.err
    assert "hi curl" not in now.err


def test_a_command_that_is_too_long_to_read_is_not_asked_about(playhead, forge, home, monkeypatch):
    monkeypatch.setattr("playhead.cli.replaying.approval.can_ask", lambda: True)
    monkeypatch.setattr("click.confirm", pytest.fail)
    tape = forge(command=["sh", "-c", "x" * 20_000])
    now = playhead("replay", tape.end())
    assert now.code == 4
    assert "10,006 more characters" in now.err

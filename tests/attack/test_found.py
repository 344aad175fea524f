"""Tapes and sessions with which the attack suite broke a verb, each made small."""

import json

import pytest
from click.testing import CliRunner
from tests.attack.mutants import SESSIONS, _forge

from playhead.cli import cli
from playhead.tape.single_file import unpack


def tape_with(folder, change):
    tape = _forge.Forge(folder)
    change(tape)
    run = tape.end("ok")
    if change is half_a_surrogate_pair:
        members = json.loads((run / "manifest.json").read_text())
        (run / "manifest.json").write_text(json.dumps({**members, "name": "\ud800"}))
    return run


def headers_that_are_a_number(tape):
    call = tape.call("http", "GET x.test/", {"url": "http://x.test/"})
    tape.event(
        "chunk",
        {"call": call, "stream": "head", "value": {"status": 200, "headers": 7}, "at_ns": [1]},
    )
    tape.outcome(call, value=None)


def purpose_that_is_a_list(tape):
    turn = tape.event("turn.start", {"name": "reply", "purpose": ["a"], "input": None})
    tape.event("turn.end", {"turn": turn, "how": "returned"})


def outcome_of_a_list(tape):
    tape.event("outcome", {"call": [1], "how": "returned"})


def half_a_surrogate_pair(tape):
    """In the manifest: `tape_with` writes it, because the forge cannot."""


CHANGES = (
    headers_that_are_a_number,
    purpose_that_is_a_list,
    outcome_of_a_list,
    half_a_surrogate_pair,
)
VERBS = (
    ("show", "RUN", "--full"),
    ("export", "RUN", "--html", "OUT"),
    ("export", "RUN", "--tape", "OUT"),
    ("replay", "RUN", "--trust", "--dry-run"),
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda one: one.__name__)
def test_no_verb_breaks_on_a_tape_with(change, tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_HOME", str(tmp_path))
    run = tape_with(tmp_path, change)
    for verb in VERBS:
        named = {"RUN": run.name, "OUT": str(tmp_path / verb[-2].strip("-"))}
        done = CliRunner().invoke(cli, [named.get(word, word) for word in verb])
        assert done.exception is None or isinstance(done.exception, SystemExit), (
            verb,
            done.exception,
        )
    assert unpack(tmp_path / "tape", tmp_path / "again").is_dir()


def test_a_claude_session_whose_usage_is_a_text_is_imported(tmp_path, monkeypatch):
    monkeypatch.setenv("PLAYHEAD_HOME", str(tmp_path / "home"))
    rows = [json.loads(one) for one in SESSIONS["CLAUDE"].read_text().splitlines()]
    for row in rows:
        if row.get("type") == "assistant":
            row["message"]["usage"] = {"output_tokens": "many"}
    file = tmp_path / "claude.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = CliRunner().invoke(cli, ["import", "claude", str(file)])
    assert done.exit_code == 0, done.exception

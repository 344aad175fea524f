"""The demo, whole: it is the first thing that people run."""

import os
import subprocess
import sys

import pytest

from playhead.cli.demo import demo_command

# What the demo prints, with the SDK of Anthropic and without it.
PRINTS = (
    "Done: refund R-77 is booked.",
    "turn refund · pay the money back",
    "✗ HTTPError: HTTP Error 503",
    "intact:",
    "plan:made",
    "turn digest failed; last completed seam: summary written",
    "has 2 failed turns",
    "session: pass",
    "pass worker-3: 2 calls served",
    "What next:",
)


# Without the SDK it runs in `tests/roundtrip/test_newcomer.py`.
@pytest.mark.slow
def test_the_demo_records_shows_plays_verifies_and_replays(tmp_path):
    store = tmp_path / "tapes"
    environ = {**os.environ, "TMPDIR": str(tmp_path), "PLAYHEAD_RECORD": "0"}
    ended = subprocess.run(
        [sys.executable, "-m", "playhead", "demo", "--store", str(store)],
        env=environ, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert [said for said in PRINTS if said not in ended.stdout] == []
    assert "identical" in ended.stderr
    assert len(list((store / "runs").iterdir())) == 6


def test_without_the_sdk_the_agent_is_the_same_but_for_one_import(tmp_path, monkeypatch):
    demo_command.copy_files(tmp_path / "with")
    monkeypatch.setattr(demo_command, "find_spec", lambda _: None)
    demo_command.copy_files(tmp_path / "without")
    before = (tmp_path / "with" / "refund_agent.py").read_text().splitlines()
    after = (tmp_path / "without" / "refund_agent.py").read_text().splitlines()
    changed = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
    assert changed == [("import anthropic", "import messages_client as anthropic")]

"""The demo, whole: it is the first thing that people run."""

import os
import subprocess
import sys

import pytest

from playhead.cli.demo import demo_command

PROGRAM = """
import sys
from importlib.util import find_spec
from playhead.cli import main
from playhead.cli.demo import demo_command
if {without_sdk}:
    demo_command.find_spec = lambda name: None if name == "anthropic" else find_spec(name)
sys.argv = ["playhead", "demo", "--store", {store!r}]
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("without_sdk", [False, True])
def test_the_demo_records_shows_plays_verifies_and_replays(tmp_path, without_sdk):
    store = tmp_path / "tapes"
    program = PROGRAM.format(without_sdk=without_sdk, store=str(store))
    environ = {**os.environ, "TMPDIR": str(tmp_path), "PLAYHEAD_RECORD": "0"}
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env=environ, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr
    out = ended.stdout
    for said in (
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
    ):
        assert said in out
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

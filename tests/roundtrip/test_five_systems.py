"""What users of the five systems do at the command line, each from recording to verdict."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PLAYHEAD = [sys.executable, "-m", "playhead"]


class Desk:
    """A folder and a store of its own, and programs in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        kept = {k: v for k, v in os.environ.items() if not k.startswith("PLAYHEAD_")}
        self.env = {**kept, "PLAYHEAD_HOME": str(self.home), "NO_COLOR": "1", "COLUMNS": "100"}

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def run(self, *words: object, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(word) for word in words],
            cwd=self.folder,
            env={**self.env, **env},
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )

    def python(self, *words: object, **env: str) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, *words, **env)

    def play(self, *words: object, **env: str) -> subprocess.CompletedProcess[str]:
        return self.run(*PLAYHEAD, *words, **env)

    def runs(self) -> list[str]:
        return sorted(path.name for path in (self.home / "runs").iterdir())


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


NIGHTLY = """
import subprocess
import playhead
with playhead.record(run_id="nightly", force=True, intercept=True{more}):
    print(subprocess.run(["date", "+%N"], capture_output=True, text=True).stdout, end="")
"""


@pytest.mark.parametrize("more", ["", ", store='home'"])
def test_a_replay_of_a_program_that_forces_its_run_leaves_the_recording_alone(desk, more):
    app = desk.write("app.py", NIGHTLY.format(more=more))
    first = desk.python(app)
    assert first.returncode == 0, first.stderr
    assert desk.runs() == ["nightly"]
    before = {path: path.read_bytes() for path in (desk.home / "runs/nightly").iterdir()}
    for _ in range(2):
        again = desk.play("replay", "nightly")
        assert "identical" in again.stdout + again.stderr, again.stdout + again.stderr
        assert again.returncode == 0
    assert {path: path.read_bytes() for path in (desk.home / "runs/nightly").iterdir()} == before
    assert not [name for name in desk.runs() if ".old" in name]
    assert list(desk.folder.glob("**/nightly.old*")) == []

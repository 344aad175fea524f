"""The first `uv run` of a project makes .venv and uv.lock; its recording replays before and after they are deleted."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PLAYHEAD = [sys.executable, "-m", "playhead"]
UV = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
PROJECT = '[project]\nname = "shop"\nversion = "0.1"\nrequires-python = ">=3.10"\n'
AGENT = """
import random, subprocess
print(random.random(), subprocess.run(["date", "+%N"], capture_output=True, text=True).stdout)
"""


@pytest.mark.skipif(UV is None, reason="needs uv")
def test_the_first_uv_run_replays_with_and_without_its_environment(tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text(PROJECT)
    (project / "agent.py").write_text(AGENT)
    env = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    env |= {"PLAYHEAD_HOME": str(tmp_path / "home"), "UV_CACHE_DIR": str(tmp_path / "cache")}

    def run(*words):
        return subprocess.run(
            [*PLAYHEAD, *words], cwd=project, env=env, capture_output=True, text=True, check=False
        )

    python = os.path.realpath(sys.executable)
    recorded = run("record", "--", UV, "run", "--python", python, "agent.py")
    assert recorded.returncode == 0, recorded.stderr
    assert "Creating virtual environment" in recorded.stderr
    with_it = run("replay")
    assert with_it.returncode == 0, with_it.stderr
    assert with_it.stdout == recorded.stdout
    shutil.rmtree(project / ".venv")
    (project / "uv.lock").unlink()
    without_it = run("replay")
    assert without_it.returncode == 0, without_it.stderr
    assert without_it.stdout == recorded.stdout

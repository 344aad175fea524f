"""Record a program in a project folder, and ask about its files by the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests import warm_start


@dataclass(frozen=True)
class Project:
    """A folder with a store beside it."""

    folder: Path
    home: Path

    def playhead(self, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "PLAYHEAD_HOME": str(self.home)}
        return warm_start.run(
            [sys.executable, "-m", "playhead", *words],
            cwd=options.pop("cwd", self.folder),
            env=env,
            stdout=options.pop("stdout", subprocess.PIPE),
            stderr=subprocess.PIPE,
            text=True,
            timeout=100,
            check=False,
            **options,
        )

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def record(self, program: str, *options: str) -> None:
        """The program is outside of the workspace: what changes in there is its work alone."""
        path = self.home.parent / "agent.py"
        path.write_text(program)
        done = self.playhead("record", "--quiet", *options, "--", sys.executable, str(path))
        assert done.returncode == 0, done.stderr

    def runs(self) -> list[str]:
        """The runs of the store, oldest first. Names of runs of one second are in no order."""
        runs = (self.home / "runs").iterdir()
        return [one.name for one in sorted(runs, key=lambda one: one.stat().st_ctime_ns)]

    def json(self, *words: str) -> Any:
        done = self.playhead(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    folder = tmp_path / "project"
    folder.mkdir()
    return Project(folder=folder, home=tmp_path / "home")

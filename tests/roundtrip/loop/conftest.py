"""A project with prompts, a small agent, and `playhead` as a person types it."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests import warm_start

AGENT = Path(__file__).parent / "programs" / "agent.py"
STAGES = ("--stage", "plan:1", "--stage", "work:5", "--prompt", "prompts/{stage}.md")


@dataclass(frozen=True)
class Project:
    folder: Path
    store: Path
    agent = ("--", sys.executable, str(AGENT))
    stages = STAGES

    def env(self, **more):
        known = {name: value for name, value in os.environ.items() if "PLAYHEAD" not in name}
        return {**known, "AGENT_STOPS_AT": "work2", "PLAYHEAD_HOME": str(self.store), **more}

    def playhead(self, *words, code=0, **more):
        argv = [sys.executable, "-m", "playhead", *words]
        done = warm_start.run(
            argv, cwd=self.folder, env=self.env(**more), capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stderr
        return done

    def loop(self, *words, session="fix", code=0, **more):
        """Plan once, work until the agent says stop."""
        agent = ("--", sys.executable, str(AGENT))
        return self.playhead(
            "loop", "--session", session, *STAGES, *words, *agent, code=code, **more
        )

    def json(self, *words):
        return json.loads(self.playhead(*words, "--json").stdout)

    def run(self, session="fix"):
        return self.store / "runs" / session

    def state(self, session="fix"):
        return json.loads((self.store / "sessions" / session / "state.json").read_text())

    def files(self, session="fix"):
        """What each iteration has left, without the tape."""
        run = self.run(session)
        return {str(one.relative_to(run)): one for one in sorted(run.glob("stage-*/**/*.*"))}


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    (folder / "prompts").mkdir(parents=True)
    (folder / "prompts" / "plan.md").write_text("Make a plan.\n")
    (folder / "prompts" / "work.md").write_text("Do the work.\n")
    (folder / "context.md").write_text("What is known.\n")
    return Project(folder, tmp_path / "store")

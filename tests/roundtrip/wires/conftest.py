"""Record a program, take its servers away, replay it."""

import os
import subprocess
import sys

import pytest

PLAYHEAD = (sys.executable, "-m", "playhead")


class Play:
    """Records and replays one program in a folder of its own."""

    def __init__(self, home):
        self.folder = home / "work"
        self.folder.mkdir()
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PLAYHEAD_", "PYTHON"))}
        self._env = {**kept, "PLAYHEAD_HOME": str(home / "home")}

    def run(self, *argv, **more):
        return subprocess.run(
            [*PLAYHEAD, *argv],
            cwd=self.folder,
            env={**self._env, **more},
            capture_output=True,
            text=True,
            timeout=100,
            stdin=subprocess.DEVNULL,
            check=False,
        )

    def record(self, program, *words, **more):
        (self.folder / "agent.py").write_text(program)
        command = (sys.executable, "agent.py", *map(str, words))
        taken = self.run("record", "--", *command, **more)
        assert taken.returncode == 0, taken.stderr
        assert "partial" not in taken.stderr
        return taken

    def replay(self, *options, **more):
        return self.run("replay", *options, "last", **more)

    def assert_identical(self, taken, **more):
        again = self.replay(**more)
        assert again.returncode == 0, again.stderr
        assert again.stdout == taken.stdout

    def edit(self, old, new):
        text = (self.folder / "agent.py").read_text()
        assert old in text
        (self.folder / "agent.py").write_text(text.replace(old, new))


@pytest.fixture
def play(tmp_path):
    return Play(tmp_path)

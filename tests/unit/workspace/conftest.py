"""A project folder, and a recording of it without a command: calls are marked by the test itself."""

from __future__ import annotations

import dataclasses
import os
import stat
import subprocess
from pathlib import Path

import pytest

from playhead.recording.recorder import Recorder
from playhead.tape.manifest import Manifest, read_manifest, write_manifest
from playhead.tape.reader import Tape
from playhead.workspace.history import FileHistory, read_history
from playhead.workspace.taping import WorkspaceTape, open_workspaces
from playhead.workspace.watch.call_marks import CallMarks, marks_of

GIT = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b.c",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b.c",
    "GIT_CONFIG_GLOBAL": os.devnull,
}


class Session:
    """A recorded folder. `call` runs a shell command as a call of the agent."""

    def __init__(self, home: Path, folder: Path, name: str = "r1") -> None:
        self.home, self.folder = home, folder
        run = home / "runs" / name
        run.mkdir(parents=True)
        self.recorder = Recorder(run=run, run_id=name, who="test")
        write_manifest(
            run,
            Manifest(run=name, name="test", started_ns=0, started_at="", cwd=str(folder)),
        )
        self.tape: WorkspaceTape = open_workspaces(self.recorder, home, [folder])
        self.tape.start(self.recorder)
        marks = marks_of(str(run))
        assert marks is not None
        self.marks: CallMarks = marks
        self.calls = 0

    def end(self) -> None:
        """Say in the manifest that the run has ended."""
        path = self.recorder.run
        write_manifest(path, dataclasses.replace(read_manifest(path), status="ok"))

    def shell(self, script: str) -> None:
        subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env={**os.environ, **GIT},
            capture_output=True,
            check=False,
        )

    def call(self, script: str) -> str:
        self.calls += 1
        name = f"1:{self.calls}"
        self.marks.start(name)
        self.shell(script)
        self.marks.end(name)
        return name

    def stop(self) -> FileHistory:
        self.tape.stop()
        self.recorder.close()
        return read_history(Tape(self.recorder.run), self.home)


def fingerprint(folder: Path) -> dict[bytes, tuple[int, bytes]]:
    """Every path with its mode and content; nothing for a folder that is not there."""
    found: dict[bytes, tuple[int, bytes]] = {}
    root = os.fsencode(folder)
    rest = [root] if folder.exists() else []
    while rest:
        for one in os.scandir(rest.pop()):
            mode = one.stat(follow_symlinks=False).st_mode
            content = b""
            if stat.S_ISLNK(mode):
                content = os.readlink(one.path)
            elif stat.S_ISREG(mode):
                with open(one.path, "rb", buffering=0) as file:
                    content = file.read()
            elif stat.S_ISDIR(mode):
                rest.append(one.path)
            else:
                continue
            found[one.path[len(root) + 1 :]] = (mode, content)
    return found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small repository with a packed history, an ignored folder and an untracked file."""
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    for number in range(20):
        lines = "".join(f"line {line} of {number}\n" for line in range(200))
        (folder / "src" / f"m{number}.py").write_text(lines)
    (folder / "empty").mkdir()
    (folder / "build").mkdir()
    (folder / "build" / "out.bin").write_bytes(b"x" * 1000)
    (folder / ".gitignore").write_text("build/\n*.log\n")
    script = "git init -q . && git add -A && git commit -qm one && git gc -q && touch notes.txt"
    subprocess.run(["sh", "-c", script], cwd=folder, env={**os.environ, **GIT}, check=True)
    return folder


@pytest.fixture
def session(tmp_path: Path, project: Path) -> Session:
    return Session(tmp_path / "home", project)

"""`playhead record` on real programs: how to run it, and what is on the tape afterwards."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from tests import warm_start

from playhead.events import Event
from playhead.tape.care.verify import verify
from playhead.tape.manifest import Manifest, read_manifest, status_of
from playhead.tape.reader import Tape

PLAYHEAD = (sys.executable, "-m", "playhead")


@dataclass(frozen=True)
class Take:
    """One recording, after the fact."""

    home: Path
    ended: Any = None

    @cached_property
    def run(self) -> Path:
        (path,) = (self.home / "runs").iterdir()
        return path

    @property
    def manifest(self) -> Manifest:
        return read_manifest(self.run)

    @property
    def status(self) -> str:
        return status_of(self.manifest)

    @cached_property
    def events(self) -> list[Event]:
        return list(Tape(self.run).events())

    @property
    def damages(self) -> list[str]:
        return [str(one) for one in verify(self.run).damages]

    def of(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.kind == kind]

    def calls(self, boundary: str = "process") -> list[Event]:
        return [one for one in self.of("call") if one.data["boundary"] == boundary]

    @property
    def processes(self) -> list[Event]:
        """The first event of each process of the program: not of the launcher and its attendant."""
        launcher, *others = self.of("segment.start")
        return [one for one in others if one.data["argv"] != launcher.data["argv"]]

    @property
    def root(self) -> str:
        return self.of("segment.start")[0].ref

    def printed(self, stream: str = "stdout") -> str:
        return "".join(
            one.data["text"] for one in self.of("output") if one.data["stream"] == stream
        )


class Recorder:
    """Runs `playhead record` with a store of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PLAYHEAD_", "PYTHON", "COV_"))
        }
        bin_folder = str(Path(sys.executable).parent)
        path = f"{bin_folder}{os.pathsep}{kept['PATH']}"
        self.env = {**kept, "PATH": path, "PLAYHEAD_HOME": str(self.home)}

    def argv(self, *command: str, options: Sequence[str] = ()) -> list[str]:
        return [*PLAYHEAD, "record", *options, "--", *command]

    def __call__(
        self,
        *command: str,
        options: Sequence[str] = (),
        env: Mapping[str, str | None] | None = None,
        **how: Any,
    ) -> Take:
        ended = warm_start.run(
            self.argv(*command, options=options),
            env=self.with_env(env),
            check=False,
            **{"capture_output": True, "text": True, "cwd": self.folder, **how},
        )
        return Take(self.home, ended)

    def bare(
        self, *command: str, env: Mapping[str, str | None] | None = None, **how: Any
    ) -> subprocess.CompletedProcess[Any]:
        """The same command without us."""
        return subprocess.run(
            command,
            env=self.with_env(env),
            check=False,
            **{"capture_output": True, "text": True, "cwd": self.folder, **how},
        )

    def start(
        self, *command: str, options: Sequence[str] = (), **how: Any
    ) -> subprocess.Popen[Any]:
        settings = {"env": self.env, "cwd": self.folder, "stdout": subprocess.PIPE, **how}
        return subprocess.Popen(self.argv(*command, options=options), **settings)

    def finding(self, folder: Path, *command: str) -> list[str]:
        """The command with a folder on its PYTHONPATH that is not on the launcher's."""
        shell = 'PYTHONPATH="${PYTHONPATH:+$PYTHONPATH:}$0" exec "$@"'
        return ["sh", "-c", shell, str(folder), *command]

    def take(self) -> Take:
        return Take(self.home)

    def script(self, name: str, text: str, mode: int = 0o644) -> str:
        path = self.folder / name
        path.write_text(text)
        path.chmod(mode)
        return str(path)

    def with_env(self, changes: Mapping[str, str | None] | None) -> dict[str, str]:
        made = {**self.env, **(changes or {})}
        return {name: value for name, value in made.items() if value is not None}


@pytest.fixture
def record(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path)

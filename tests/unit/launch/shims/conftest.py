"""Shims with a sidecar and a tape of their own, in both makes: how to start a program through one, and
what is on the tape afterwards.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from playhead.launch.shims.post import make_shims
from playhead.launch.shims.program_names import Wanted
from playhead.launch.sidecar import control
from playhead.recording.recorder import Recorder
from playhead.replay.matching.taped import TapedCall, answer_of, load
from playhead.tape.reader import Tape


class Desk:
    """`env` is what a program has that finds shims for `names`."""

    def __init__(self, folder: Path, names: list[str], make: str) -> None:
        self.run = folder / "run"
        self.run.mkdir()
        self._recorder = Recorder(run=self.run, run_id="run", who="tests")
        env = {**os.environ, "PLAYHEAD_SHIMS_NATIVE": "1" if make == "native" else "0"}
        for name in [one for one in env if one.startswith("PLAYHEAD_")][:-1]:
            del env[name]
        self.shims = make_shims(self._recorder, Wanted(names=tuple(names)), env, launcher=0)
        self.sidecar = control.start(self._recorder, shims=self.shims)
        self.sidecar.watch(os.getpid())
        self.env = dict(self.shims.env)
        self.make = make
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, *argv: str, **options: object) -> subprocess.Popen[bytes]:
        """Past `PATH`: of two processes that look for a program, the one that is tested is the shim."""
        shim = shutil.which(argv[0], path=self.env["PATH"])
        env = {**self.env, **options.pop("env", {})}
        self._started.append(subprocess.Popen(argv, executable=shim, env=env, **options))
        return self._started[-1]

    def end(self) -> list[TapedCall]:
        """Everything that was told, and nobody at the desk any more."""
        self.close()
        return load(Tape(self.run)).calls

    def close(self) -> None:
        for one in self._started:
            for stream in (one.stdin, one.stdout, one.stderr):
                if stream is not None:
                    stream.close()
            one.wait()
        if not self._recorder.closed:
            self.sidecar.dismiss()
            self.shims.remove()
            self._recorder.close()

    def said(self, call: TapedCall, stream: str) -> bytes:
        pieces = answer_of(Tape(self.run), call, match={}).pieces
        return b"".join(one.data for one in pieces if one.stream == stream)


@pytest.fixture(params=["native", "fallback"])
def desk(request, tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path, ["bash", "cat", "sh", "tee"], request.param)
    yield made
    made.close()

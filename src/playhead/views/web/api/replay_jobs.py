"""Run replays for the API. Knows the command and the limit of concurrent replays.

Each replay is a subprocess: it runs the recorded program, and the server must survive it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from playhead.errors import TapeNotReplayable
from playhead.replay.modes.faults import parse_fault
from playhead.views.web.api.api_responses import Problem, json_response
from playhead.views.web.api.schema_checks import CheckedRequest

if TYPE_CHECKING:
    from playhead.views.web.api.api_app import Desk

_AT_ONCE = 2
PATIENCE_S = 600
# The end of the error output of a program that failed before there was a report.
_LONGEST_COMPLAINT = 2_000


class Replays:
    """Replays of one store. Refused unless the server was started with permission to replay."""

    def __init__(self, home: Path, *, allowed: bool) -> None:
        self._home = home
        self._allowed = allowed
        self._free = BoundedSemaphore(_AT_ONCE)

    def run(self, path: Path, faults: Sequence[str]) -> dict[str, Any]:
        """Replay a run offline against its tape. Return the report."""
        if not self._allowed:
            raise Problem(
                403,
                "This server does not run replays.",
                "A replay executes the recorded command: allow it with `playhead serve --allow-replay`.",
            )
        for spec in faults:
            parse_fault(spec)
        if not self._free.acquire(blocking=False):
            raise Problem(429, f"{_AT_ONCE} replays are running.", "Try again when one has ended.")
        try:
            return self._run(path, faults)
        finally:
            self._free.release()

    def _run(self, path: Path, faults: Sequence[str]) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="playhead-") as folder:
            report = Path(folder) / "report.json"
            argv = [sys.executable, "-m", "playhead", "replay", str(path), "--quiet"]
            argv += ["--report", str(report), "--store", str(self._home)]
            argv += [word for spec in faults for word in ("--fault", spec)]
            code, said = _ran(argv)
            if not report.exists():
                raise TapeNotReplayable(said or f"The replay exited with code {code}.")
            made: dict[str, Any] = json.loads(report.read_bytes())
        return made


def _ran(argv: list[str]) -> tuple[int, str]:
    """Run a command. Return its exit code and the end of its error output. It has its own session, so that all
    processes it started end with it.
    """
    with subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            _, errors = process.communicate(timeout=PATIENCE_S - 10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise Problem(409, f"The replay did not end within {PATIENCE_S - 10} s.") from None
    return process.returncode, errors.decode("utf-8", "replace").strip()[-_LONGEST_COMPLAINT:]


def replay(desk: Desk, asked: CheckedRequest) -> Response:
    path = desk.stories.path_here(asked.values["id"], "replayed")
    return json_response(desk.replays.run(path, asked.body.get("faults", ())))

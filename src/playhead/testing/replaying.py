"""Replay a tape from a test, as `playhead replay` does it: the recorded command in its own process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from playhead.errors import TapeError, UsageError


def replay(
    tape: str | os.PathLike[str],
    command: Sequence[str] | None = None,
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 300,
) -> dict[str, Any]:
    """Replay a tape and return its report: `{"verdict": "identical", "coverage": …}`.

    The program prints to the test's own output. Raises TapeError if the tape cannot be replayed.
    """
    with tempfile.TemporaryDirectory(prefix="playhead-") as folder:
        report = Path(folder) / "report.json"
        argv = [
            sys.executable,
            "-m",
            "playhead",
            "replay",
            os.fspath(tape),
            "--quiet",
            "--report",
            str(report),
        ]
        argv += (
            ["--store", str(Path(folder) / "store"), "--", *command]
            if command
            else ["--store", str(Path(folder) / "store")]
        )
        done = subprocess.run(
            argv,
            cwd=cwd,
            env=dict(env) if env is not None else None,
            timeout=timeout,
            capture_output=True,
            text=True,
            check=False,
        )
        sys.stdout.write(done.stdout)
        sys.stderr.write(done.stderr)
        if not report.exists():
            kind = TapeError if done.returncode == TapeError.exit_code else UsageError
            raise kind(done.stderr.strip() or f"playhead replay left with {done.returncode}")
        members: dict[str, Any] = json.loads(report.read_text())
        return members

"""Many replays of one tape, each in a process of its own. Knows `playhead replay` from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from playhead.errors import UsageError
from playhead.replay.modes.chaos import Result, Trial, result_of


def try_all(
    tape: Path, trials: Sequence[Trial], command: Sequence[str], *,
    jobs: int, timeout: float, seed: int, told: Callable[[Result], None],
) -> list[Result]:  # fmt: skip
    """Each trial once, `jobs` at a time. `told` hears of each as it ends."""
    results: list[Result] = []
    with (
        ThreadPoolExecutor(jobs) as pool,
        tempfile.TemporaryDirectory(prefix="playhead-") as folder,
    ):

        def run(number: int) -> Result:
            trial = trials[number]
            report = Path(folder) / f"{number}.json"
            words = ["replay", str(tape), "--fault", trial.spec, "--seed", str(seed)]
            words += ["--no-persist", "--quiet", "--report", str(report)]
            words += ["--", *command] if command else []
            return result_of(trial, _replay(words, report, timeout))

        for done in as_completed([pool.submit(run, number) for number in range(len(trials))]):
            results.append(done.result())
            told(results[-1])
    return results


def _replay(words: Sequence[str], report: Path, timeout: float) -> dict[str, Any] | None:
    """The report; None: it did not end in time, and was killed with all that it started."""
    process = subprocess.Popen(
        [sys.executable, "-m", "playhead", *words],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    try:
        _, said = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return None
    if not report.exists():
        last = said.decode("utf-8", "replace").strip().splitlines()[-1:] or ["it said nothing"]
        raise UsageError(f"The replay could not be run: {last[0]}")
    members: dict[str, Any] = json.loads(report.read_bytes())
    return members

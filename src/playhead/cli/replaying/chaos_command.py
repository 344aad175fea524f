"""`playhead chaos`: many replays of one tape, each with one fault and in its own process."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import click

from playhead.cli.common import Duration, json_option, print_json, store_option
from playhead.cli.replaying.approval import approved_command, trust_option
from playhead.cli.replaying.replay_arguments import plain
from playhead.cli.run_names import RunThenCommand, find_tape, run_argument
from playhead.errors import UsageError
from playhead.launch.replaying.replay_run import check_tape
from playhead.replay.matching.taped import load
from playhead.replay.modes.chaos_trials import Trial, TrialResult, ranked, result_of, trials
from playhead.views.text.replay_results import ChaosProgress, print_chaos


@click.command(
    cls=RunThenCommand,
)
@run_argument
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    metavar="N",
    default=50,
    show_default=True,
    help="Maximum number of replays.",
)
@click.option(
    "--seed", type=int, metavar="N", default=0, help="Random seed for the order of the faults."
)
@click.option(
    "--at-once",
    type=click.IntRange(min=1),
    metavar="N",
    default=1,
    show_default=True,
    help="Number of faults in each replay, at different steps.",
)
@click.option(
    "--live",
    multiple=True,
    metavar="WHAT",
    help="Perform these calls live, such as llm, to see how a model handles failures. Repeatable.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    default=2,
    show_default=True,
    help="Number of parallel replays.",
)
@click.option(
    "--timeout", type=Duration(), default=120.0, help="Time limit of one replay. Default: 2m."
)
@trust_option
@json_option
@store_option
@click.argument("command_line", metavar="[-- CMD...]", nargs=-1, type=click.UNPROCESSED)
def command(
    run: str, runs: int, seed: int, at_once: int, live: tuple[str, ...], jobs: int,
    timeout: float, trusted: bool, as_json: bool, store: Path | None,
    command_line: tuple[str, ...],
) -> None:  # fmt: skip
    """Inject one failure at a time, at every step, and report which of them broke the agent.

    \b
    playhead chaos last --runs 50 --seed 7
    playhead chaos last --at-once 2 --live llm
    playhead chaos last --json | jq '.results[] | select(.outcome == "crashed")'

    Each trial is a replay with one fault, or several with --at-once. Nothing is sent but what --live
    names, and no run is stored. Exit codes: 0 the agent survived all faults; 3 it did not; 2 no fault
    fired.
    """
    path = find_tape(store, run)
    tape = plain(check_tape(path))
    approved_command(path, tape, command_line, trusted=trusted)
    planned = trials(load(tape), runs, seed, at_once=at_once)
    if not planned:
        raise UsageError(
            f"Run {tape.manifest.run} has no call that can fail: no LLM, HTTP, tool or process call of its own."
        )
    with ChaosProgress(len(planned)) as progress:
        found = try_all(
            path, planned, command_line, jobs=jobs, timeout=timeout, seed=seed, live=live,
            on_result=progress.tell,
        )  # fmt: skip
    results = ranked(found)
    if as_json:
        listed = [dataclasses.asdict(one) for one in results]
        print_json({"run": tape.manifest.run, "seed": seed, "results": listed})
    else:
        print_chaos(tape.manifest.run, results)
    if not any(one.outcome != "silent" for one in results):
        calls = len(load(tape).calls)
        raise UsageError(
            f"No fault fired: the run has {calls} calls, and none of them was made again."
        )
    broke = any(one.outcome in ("hung", "crashed", "wrong") for one in results)
    click.get_current_context().exit(3 if broke else 0)


def try_all(
    tape: Path, trials: Sequence[Trial], command: Sequence[str], *,
    jobs: int, timeout: float, seed: int, live: Sequence[str], on_result: Callable[[TrialResult], None],
) -> list[TrialResult]:  # fmt: skip
    """Run each trial once, `jobs` at a time; call `on_result` with each result."""
    results: list[TrialResult] = []
    with (
        ThreadPoolExecutor(jobs) as pool,
        tempfile.TemporaryDirectory(prefix="playhead-") as folder,
    ):

        def run(number: int) -> TrialResult:
            trial = trials[number]
            report = Path(folder) / f"{number}.json"
            words = ["replay", str(tape), "--seed", str(seed)]
            words += [word for spec in trial.specs for word in ("--fault", spec)]
            words += [word for one in live for word in ("--live", one)]
            # The user has agreed already. The original run, not a copy: a copy counts as foreign.
            words += ["--trust", "--no-persist", "--quiet", "--report", str(report)]
            words += ["--", *command] if command else []
            return result_of(trial, _replay(words, report, timeout))

        for done in as_completed([pool.submit(run, number) for number in range(len(trials))]):
            results.append(done.result())
            on_result(results[-1])
    return results


def _replay(words: Sequence[str], report: Path, timeout: float) -> dict[str, Any] | None:
    """The report; None after a timeout, when the whole process group is killed."""
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
        last = said.decode("utf-8", "replace").strip().splitlines()[-1:] or ["no error message"]
        raise UsageError(f"The replay failed to start: {last[0]}")
    members: dict[str, Any] = json.loads(report.read_bytes())
    return members

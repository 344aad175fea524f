"""`playhead chaos`."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from playhead.cli.common import Duration, json_option, print_json, run_argument, store_option
from playhead.cli.replaying.tapes import find_tape, plain
from playhead.cli.replaying.trying import try_all
from playhead.launch.replay_command import check_tape
from playhead.replay.matching.taped import load
from playhead.replay.modes.chaos import ranked, trials
from playhead.views.text.chaos import Progress, print_chaos


@click.command()
@run_argument
@click.option("--runs", type=click.IntRange(min=1), default=50, show_default=True, help="At most.")
@click.option("--seed", type=int, default=0, help="Decides which faults come first.")
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="At a time.")
@click.option("--timeout", type=Duration(), default=120.0, help="For one replay. Default: 2m.")
@json_option
@store_option
@click.argument("command_line", metavar="[-- CMD...]", nargs=-1, type=click.UNPROCESSED)
def command(
    run: str, runs: int, seed: int, jobs: int, timeout: float, as_json: bool, store: Path | None,
    command_line: tuple[str, ...],
) -> None:  # fmt: skip
    """One failure at a time, at every step of a run, and those first that broke the agent.

    \b
    playhead chaos last --runs 50 --seed 7
    playhead chaos last --json | jq '.results[] | select(.outcome == "crashed")'

    Each is a replay with one fault: nothing is sent, nothing is kept. Exit code 0: it came through
    all of them. 3: it did not.
    """
    tape = plain(check_tape(find_tape(store, run)))
    planned = trials(load(tape), runs, seed)
    with Progress(len(planned)) as progress:
        found = try_all(
            tape.run, planned, command_line, jobs=jobs, timeout=timeout, seed=seed,
            told=progress.tell,
        )  # fmt: skip
    results = ranked(found)
    if as_json:
        listed = [dataclasses.asdict(one) for one in results]
        print_json({"run": tape.manifest.run, "seed": seed, "results": listed})
    else:
        print_chaos(tape.manifest.run, results)
    broke = any(one.outcome in ("hung", "crashed", "wrong") for one in results)
    click.get_current_context().exit(3 if broke else 0)

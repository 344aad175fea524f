"""`playhead replay`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from playhead import config
from playhead.cli.common import run_argument, store_option
from playhead.cli.replaying.ending import exit_code_of, store_for, tell_end
from playhead.cli.replaying.tapes import find_tape, plain
from playhead.cli.replaying.wishing import (
    fault_options,
    mixed_options,
    plan_of,
    wishes_from,
    words_of,
)
from playhead.launch.replay_command import check_tape, replay_command
from playhead.replay.matching.taped import load
from playhead.replay.report.forecast import forecast
from playhead.views.text.forecast import print_forecast


@click.command(context_settings={"ignore_unknown_options": False, "allow_interspersed_args": True})
@run_argument
@click.option(
    "--report",
    "report_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the report as JSON.",
)
@click.option("--pace", is_flag=True, help="Keep the original timing.")
@click.option(
    "--no-proxy",
    is_flag=True,
    help="Leave base URLs as they were, even for programs that are no Python.",
)
@click.option(
    "--unfenced",
    is_flag=True,
    help="Run without a fence of the kernel. The verdict is never `identical` then.",
)
@click.option("--quiet", is_flag=True, help="No report on stderr; the exit code says it.")
@click.option("--json", "as_json", is_flag=True, help="The report on stderr as JSON.")
@mixed_options
@fault_options
@store_option
@click.argument("command_line", metavar="[-- CMD...]", nargs=-1, type=click.UNPROCESSED)
def command(
    run: str, report_file: Path | None, pace: bool, no_proxy: bool, unfenced: bool,
    quiet: bool, as_json: bool, store: Path | None, command_line: tuple[str, ...], **asked: Any,
) -> None:  # fmt: skip
    """Run the agent again with the world taken from the tape: offline, free, and in no time.

    \b
    playhead replay last                      the recorded command
    playhead replay last --report r.json      and a report for scripts
    playhead replay last -- python agent2.py  other code against the same tape
    playhead replay last --live llm           a live model, taped tools
    playhead replay last --fault llm:3=529    the same run, with a failure in it

    Nothing is sent and nothing is executed, but for what is named with --live. The program's stdout
    and stderr pass through; the report goes to stderr. Exit code 0: identical, or recovered from
    every fault. 3: diverged. 4: this tape cannot be replayed. 6: unproven, for want of a fence.
    """
    settings = config.load()
    tape = plain(check_tape(find_tape(store, run)))
    wishes = wishes_from(settings, asked)
    if asked["dry_run"]:
        print_forecast(forecast(load(tape), wishes.policy))
        return
    plan = plan_of(tape, settings, wishes, pace=pace)
    with store_for(store, persist=not asked["no_persist"]) as home:
        words = words_of(tape, command_line)
        replayed = replay_command(
            tape, words, settings, plan, store=home, proxy=not no_proxy, fenced=not unfenced
        )
        tell_end(tape, replayed, report_file=report_file, as_json=as_json, quiet=quiet)
    sys.exit(exit_code_of(replayed))

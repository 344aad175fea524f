"""`playhead replay`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click

from playhead import config
from playhead.cli.common import run_argument, store_option
from playhead.cli.tapes import find_tape, plain
from playhead.errors import TapeNotReplayable
from playhead.inject.replaying import Replayed, check_tape, replay_command
from playhead.replay.ignore import rules_from
from playhead.replay.plan import Plan
from playhead.views.text.report import print_report


@click.command(context_settings={"ignore_unknown_options": False, "allow_interspersed_args": True})
@run_argument
@click.option(
    "--report",
    "report_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the report as JSON.",
)
@click.option("--pace", is_flag=True, help="Keep the original timing.")
@click.option("--quiet", is_flag=True, help="No report on stderr; the exit code says it.")
@click.option("--json", "as_json", is_flag=True, help="The report on stderr as JSON.")
@store_option
@click.argument("command_line", metavar="[-- CMD...]", nargs=-1, type=click.UNPROCESSED)
def command(
    run: str, report_file: Path | None, pace: bool, quiet: bool, as_json: bool, store: Path | None,
    command_line: tuple[str, ...],
) -> None:  # fmt: skip
    """Run the agent again with the world taken from the tape: offline, free, and in no time.

    \b
    playhead replay last                      the recorded command
    playhead replay last --report r.json      and a report for scripts
    playhead replay last -- python agent2.py  other code against the same tape

    Nothing is sent and nothing is executed. The program's stdout and stderr pass through; the report
    goes to stderr. Exit code 0: identical. 3: diverged. 4: this tape cannot be replayed.
    """
    settings = config.load()
    tape = plain(check_tape(find_tape(store, run)))
    words = list(command_line) or list(tape.manifest.command)
    if not words:
        raise TapeNotReplayable(
            "This tape does not say what was run. Name the command: playhead replay RUN -- CMD…"
        )
    section = settings.sections.get("replay", {})
    plan = Plan(tape=str(tape.run), pace=pace, ignore=rules_from(section.get("ignore")))
    replayed = replay_command(tape, words, settings, plan, store=store)
    if report_file is not None:
        report_file.write_text(
            json.dumps(replayed.report.as_json(), ensure_ascii=False, indent=2, default=str) + "\n"
        )
    if as_json:
        os.write(
            2,
            (
                json.dumps(replayed.report.as_json(), ensure_ascii=False, default=str) + "\n"
            ).encode(),
        )
    elif not quiet:
        print_report(replayed.report)
    sys.exit(exit_code_of(replayed))


def exit_code_of(replayed: Replayed) -> int:
    if (
        replayed.recorded.ended.code == TapeNotReplayable.exit_code
        and replayed.report.verdict != "identical"
    ):
        return TapeNotReplayable.exit_code
    return 0 if replayed.report.verdict == "identical" else 3

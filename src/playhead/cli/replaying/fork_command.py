"""`playhead fork`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from playhead import config
from playhead.cli.common import store_option
from playhead.cli.files.apply_fork import apply_fork
from playhead.cli.files.in_place import check_own
from playhead.cli.replaying.approval import (
    approved_command,
    environment_choice,
    environment_options,
    option_with_real_effects,
)
from playhead.cli.replaying.replay_arguments import (
    fault_options,
    mixed_options,
    options_from,
    plain,
    plan_of,
)
from playhead.cli.replaying.replay_command import exit_code_of, report_end, store_for
from playhead.cli.run_names import RunThenCommand, find_tape, run_argument
from playhead.errors import UsageError
from playhead.launch.replaying.replay_run import check_tape, replay_command
from playhead.launch.replaying.replayed_files import calls_that_changed_files
from playhead.replay.matching.taped import load
from playhead.replay.modes.edits import parse_edit
from playhead.replay.modes.fork import check_fork, live_in_fork, prefix_of
from playhead.replay.modes.replay_options import effects_from
from playhead.replay.report.forecast import forecast
from playhead.views.text.report import fork_state_line, print_forecast


@click.command(
    cls=RunThenCommand,
)
@run_argument
@click.option(
    "--at", "at", type=int, required=True, metavar="STEP", help="Number of the first live call."
)
@click.option(
    "--edit",
    "edits",
    multiple=True,
    metavar="WHAT=TEXT",
    help="Change a taped answer: llm:2.response.text=…",
)
@click.option(
    "--require-faithful", is_flag=True, help="Refuse if a call before STEP changed anything."
)
@click.option(
    "--report", "report_file", type=click.Path(dir_okay=False, path_type=Path),
    help="Write the report to a JSON file.",
)  # fmt: skip
@click.option(
    "--apply", "applies", is_flag=True, help="Show the resulting patch, then change the real files."
)
@click.option("--yes", "-y", is_flag=True, help="With --apply: do not ask.")
@click.option("--unfenced", is_flag=True, help="Run without the kernel fence.")
@click.option("--quiet", "-q", is_flag=True, help="Do not print the report.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON, on stderr.")
@environment_options
@mixed_options
@fault_options
@store_option
@click.argument("command_line", metavar="[-- CMD...]", nargs=-1, type=click.UNPROCESSED)
def command(
    run: str, at: int, require_faithful: bool, report_file: Path | None, applies: bool, yes: bool, unfenced: bool,
    quiet: bool, as_json: bool, store: Path | None, command_line: tuple[str, ...], **asked: Any,
) -> None:  # fmt: skip
    """Replay the tape up to STEP, then continue with a live model and live tools.

    \b
    playhead fork last --at 5                       run step 5 and later steps live
    playhead fork last --at 5 --apply               and change the project files as it did
    playhead fork last --at 4 --edit 'llm:2.response.text=No, look again.'
    playhead fork last --at 5 -- python agent2.py   other code from step 5 on

    Calls before STEP are answered from the tape. From STEP on these are live, unless --live names others:
    the model, processes, and tools that are declared `read` or `write` or that changed files in the
    recording. They run on a copy of the files as of STEP; the real files are untouched without --apply.
    The network is open. The new run names its parent.
    """
    settings = config.load()
    path = find_tape(store, run)
    tape = plain(check_tape(path))
    recording = load(tape)
    changed = None if unfenced else calls_that_changed_files(tape, path.parent.parent)
    if applies:
        check_own(path)
    if applies and changed is None:
        raise UsageError(
            "--apply needs the files of the run: its tape has none, or there is no fence."
        )
    effects = effects_from(settings.sections.get("effects"))
    asked["live"] = asked["live"] or live_in_fork(recording, effects, changed)
    wishes = options_from(settings, asked, fork_at=at)
    check_fork(recording, at, [parse_edit(spec) for spec in wishes.edits])
    prefix = prefix_of(recording, at, effects, changed)
    if require_faithful and not prefix.faithful:
        raise UsageError(f"This fork is not faithful: {fork_state_line(prefix)}")
    if asked["dry_run"]:
        print_forecast(forecast(recording, wishes.policy, before=at))
        return
    plan = plan_of(tape, settings, wishes)
    option = option_with_real_effects(asked, unfenced=unfenced)
    approval = approved_command(path, tape, command_line, real_effects=option)
    environment = environment_choice(approval, asked)
    with store_for(store, persist=not asked["no_persist"]) as home:
        replayed = replay_command(
            tape, approval.words, settings, plan, store=home,
            notes=(fork_state_line(prefix),), fenced=not unfenced, pool=path.parent.parent,
            environment=environment,
        )  # fmt: skip
        report_end(tape, replayed, report_file=report_file, as_json=as_json, quiet=quiet)
        if applies:
            for one in replayed.forked:
                apply_fork(one, path, ask=not yes)
    sys.exit(exit_code_of(replayed, wishes, expect=asked["expect"]))

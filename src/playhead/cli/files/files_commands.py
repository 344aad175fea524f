"""`playhead files` and `playhead blame`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from playhead.cli.common import home_to_read, json_option, print_json, store_option
from playhead.cli.files.file_runs import file_runs_of, open_file_run, path_in
from playhead.cli.run_names import run_argument
from playhead.errors import UsageError
from playhead.exporters.files_json import blame_across_json, blame_json, files_json
from playhead.story.files.blame_across import BlameAcross
from playhead.story.files.file_steps import FileStep, moment_after, text_in
from playhead.story.files.line_origins import LineOrigins
from playhead.views.text.file_changes import (
    print_blame,
    print_blame_across,
    print_changes,
    print_patch,
)


@click.command("files")
@run_argument
@click.option("--at", type=click.IntRange(min=0), metavar="N", help="Only the changes of step N.")
@click.option("--since", type=click.IntRange(min=0), metavar="N", help="Only changes after step N.")
@click.option("--patch", is_flag=True, help="Print the changes as unified diffs.")
@click.option("--all", "everything", is_flag=True, help="Include the files below .git.")
@json_option
@store_option
def files_command(
    *,
    run: str,
    at: int | None,
    since: int | None,
    patch: bool,
    everything: bool,
    as_json: bool,
    store: Path | None,
) -> None:
    """Show which files a run changed, step by step.

    \b
    playhead files last                    every change, with the call that made it
    playhead files last --since 12         changes after call 12
    playhead files last --at 12 --patch    the diff of call 12

    A step is a call, by its number in `playhead show`. Step 0 is the start of the run.
    """
    found = open_file_run(store, run)
    for number in (at, since):
        if number is not None:
            moment_after(found.story, number)
    steps = [one for one in found.steps if _is_wanted(one, at, since)]
    if as_json:
        print_json(files_json(found.story, found.history, steps, everything=everything))
    elif patch:
        print_patch(found.history, steps, everything=everything)
    else:
        print_changes(found.history, steps, everything=everything)


def _is_wanted(step: FileStep, at: int | None, since: int | None) -> bool:
    if at is not None and step.number != at and at not in [one.number for one in step.calls]:
        return False
    if since is None:
        return True
    return step.number > since or (step.number == since and not step.calls)


@click.command("blame")
@click.argument("words", metavar="[RUN] FILE", nargs=-1, required=True)
@click.option(
    "--all", "everything", is_flag=True, help="Without RUN: search the runs of all projects."
)
@json_option
@store_option
def blame_command(
    *, words: tuple[str, ...], everything: bool, as_json: bool, store: Path | None
) -> None:
    """Show which step of a run wrote each line of a file, and the prompt behind it.

    \b
    playhead blame src/app.py          the file as it is now, across all runs that changed it
    playhead blame last src/app.py     the file as the last run left it
    playhead blame last src/app.py --json | jq '.lines[] | select(.step == 12)'

    Lines marked `start` were there before the run; `-` is a line that no run wrote. `#4+` was written by
    the agent's own code after call 4, `#4~` by calls that ran at the same time. `#4 or #9`: one of
    these steps wrote the line; adjacent lines are equal, so it is not known which.
    """
    if len(words) > 2:
        raise click.UsageError("Expected [RUN] FILE.")
    if len(words) == 1:
        _across(words[0], store, everything=everything, as_json=as_json)
        return
    found = open_file_run(store, words[0])
    number, path = path_in(found.history, words[1])
    lines = LineOrigins(found.history, found.steps, number).blame(path)
    if as_json:
        print_json(blame_json(path, lines))
    else:
        print_blame(lines)


def _across(typed: str, store: Path | None, *, everything: bool, as_json: bool) -> None:
    file = Path(os.path.realpath(Path(typed).parent)) / Path(typed).name
    home = home_to_read(store)
    runs = file_runs_of(home, file, everywhere=everything or store is not None)
    if not runs:
        raise UsageError(
            f"No recorded run has changed {typed}. To see the file in one run: `playhead blame RUN {typed}`."
        )
    today = None
    if file.is_file():
        text = text_in(file.read_bytes())
        if text is None:
            raise UsageError(f"{typed} is binary: there are no lines to attribute.")
        today = text.splitlines()
    lines = BlameAcross([one.files for one in runs]).blame(runs[0].path, today)
    if as_json:
        print_json(blame_across_json(str(file), lines))
    else:
        print_blame_across(lines)

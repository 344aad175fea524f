"""`playhead files`."""

from __future__ import annotations

from pathlib import Path

import click

from playhead.cli.common import json_option, print_json, run_argument, store_option
from playhead.cli.files.file_runs import open_file_run
from playhead.exporters.files_json import files_json
from playhead.story.file_steps import FileStep, moment_after
from playhead.views.text.file_changes import print_changes, print_patch


@click.command("files")
@run_argument
@click.option("--at", type=click.IntRange(min=0), metavar="N", help="Only the changes of step N.")
@click.option("--since", type=click.IntRange(min=0), metavar="N", help="Only changes after step N.")
@click.option("--patch", is_flag=True, help="Print the changes as unified diffs.")
@click.option("--all", "everything", is_flag=True, help="Include the files below .git.")
@json_option
@store_option
def command(
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
    playhead files last                 every change, with the call that made it
    playhead files last --since 12      changes after call 12
    playhead files last --at 12 --patch the diff of call 12

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

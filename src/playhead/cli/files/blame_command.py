"""`playhead blame`."""

from __future__ import annotations

from pathlib import Path

import click

from playhead.cli.common import json_option, print_json, run_argument, store_option
from playhead.cli.files.file_runs import open_file_run, path_in
from playhead.exporters.files_json import blame_json
from playhead.story.line_origins import LineOrigins
from playhead.views.text.file_changes import print_blame


@click.command("blame")
@run_argument
@click.argument("file", metavar="FILE")
@json_option
@store_option
def command(*, run: str, file: str, as_json: bool, store: Path | None) -> None:
    """Show which step of a run wrote each line of a file, and the prompt behind it.

    \b
    playhead blame last src/app.py
    playhead blame last src/app.py --json | jq '.lines[] | select(.step == 12)'

    Lines marked `start` were there before the run. `#4+` was written by the agent's own code after
    call 4; `#4~` by calls that ran at the same time.
    """
    found = open_file_run(store, run)
    number, path = path_in(found.history, file)
    lines = LineOrigins(found.history, found.steps, number).blame(path)
    if as_json:
        print_json(blame_json(path, lines))
    else:
        print_blame(lines)

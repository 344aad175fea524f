"""`playhead seal`."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from playhead.cli.common import find_run, json_option, print_json, runs_argument, store_option
from playhead.cli.progress import counted
from playhead.errors import UsageError
from playhead.tape.sealed.seal import seal
from playhead.views.text import words


@click.command("seal")
@runs_argument
@json_option
@store_option
def command(*, runs: tuple[str, ...], as_json: bool, store: Path | None) -> None:
    """Compress a finished run: all its segments in one file, checked before the plain ones go.

    A sealed run is shown, played, verified and replayed like any other.

    \b
    playhead seal last
    """
    if not runs:
        raise UsageError("Name the run to seal, such as `playhead seal last`.")
    done = [seal(path) for path in counted([find_run(store, run) for run in runs], "Sealing")]
    if as_json:
        print_json([{**dataclasses.asdict(one), "path": str(one.path)} for one in done])
        return
    for one in done:
        before, after = words.size(one.bytes), words.size(one.compressed)
        name = one.path.parent.name
        click.echo(f"{name} is sealed: {words.count(one.events)} events, {before} in {after}.")

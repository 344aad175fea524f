"""`playhead rename`."""

from __future__ import annotations

from pathlib import Path

import click

from playhead.cli.common import find_run, run_argument, store_option
from playhead.library.marking import rename_run
from playhead.tape.manifest import read_manifest
from playhead.views.text.safe import one_line


@click.command("rename")
@run_argument
@click.argument("name")
@store_option
def command(*, run: str, name: str, store: Path | None) -> None:
    """Call a run something else. Its id stays.

    \b
    playhead rename last refund-twice
    """
    path = find_run(store, run)
    rename_run(path, name)
    click.echo(f"{path.name} is now called {one_line(read_manifest(path).name, 60)}.")

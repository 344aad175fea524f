"""`playhead keep`."""

from __future__ import annotations

from pathlib import Path

import click

from playhead.cli.common import find_run, run_argument, store_option
from playhead.library.marking import keep_run


@click.command("keep")
@run_argument
@click.option("--undo", is_flag=True, help="Let it be pruned again.")
@store_option
def command(*, run: str, undo: bool, store: Path | None) -> None:
    """Never prune this run.

    \b
    playhead keep last
    playhead keep 20261115-0711 --undo
    """
    path = find_run(store, run)
    keep_run(path, not undo)
    click.echo(f"{path.name} {'may be pruned again' if undo else 'is kept'}.")

"""`playhead keep`."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from playhead.cli.common import find_run, run_argument, store_option
from playhead.tape.manifest import read_manifest, write_manifest


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
    write_manifest(path, dataclasses.replace(read_manifest(path), keep=not undo))
    click.echo(f"{path.name} {'may be pruned again' if undo else 'is kept'}.")

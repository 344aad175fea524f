"""`playhead seal` and `playhead unseal`."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from playhead.cli.common import (
    find_run,
    json_option,
    print_json,
    run_argument,
    runs_argument,
    store_option,
)
from playhead.cli.progress_line import counted
from playhead.errors import UsageError
from playhead.tape.sealed.seal import seal, unseal
from playhead.views.text import words


@click.command("seal")
@runs_argument
@json_option
@store_option
def seal_command(*, runs: tuple[str, ...], as_json: bool, store: Path | None) -> None:
    """Compress finished runs: all segments in one file, verified before the plain files are deleted.

    Every command reads a sealed run like a plain one.

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
        click.echo(
            f"{name} is sealed: {words.count(one.events)} events, {before} compressed to {after}."
        )


@click.command("unseal")
@run_argument
@json_option
@store_option
def unseal_command(*, run: str, as_json: bool, store: Path | None) -> None:
    """Decompress a sealed run into plain JSON lines, byte for byte as they were recorded.

    \b
    playhead unseal last --json | jq -r ".segments[]" | xargs grep -c turn.end
    """
    path = find_run(store, run)
    made = unseal(path)
    if as_json:
        print_json({"id": path.name, "segments": [str(one) for one in made]})
    elif made:
        click.echo(f"{path.name} is unsealed: {', '.join(one.name for one in made)}")
    else:
        click.echo(f"{path.name} is not sealed.")

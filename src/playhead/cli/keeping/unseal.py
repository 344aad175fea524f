"""`playhead unseal`."""

from __future__ import annotations

from pathlib import Path

import click

from playhead.cli.common import find_run, json_option, print_json, run_argument, store_option
from playhead.tape.sealed.seal import unseal


@click.command("unseal")
@run_argument
@json_option
@store_option
def command(*, run: str, as_json: bool, store: Path | None) -> None:
    """Undo seal: plain JSON lines again, byte for byte as they were recorded.

    \b
    playhead unseal last --json | jq -r ".segments[]" | xargs grep -c turn.end
    """
    path = find_run(store, run)
    made = unseal(path)
    if as_json:
        print_json({"id": path.name, "segments": [str(one) for one in made]})
    elif made:
        click.echo(f"{path.name} is plain again: {', '.join(one.name for one in made)}")
    else:
        click.echo(f"{path.name} is not sealed.")

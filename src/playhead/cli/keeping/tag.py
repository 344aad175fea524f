"""`playhead tag`."""

from __future__ import annotations

from pathlib import Path

import click

from playhead.cli.common import find_run, json_option, print_json, run_argument, store_option
from playhead.library.marking import change_tags
from playhead.tape.manifest import read_manifest
from playhead.views.text.safe import one_line


@click.command("tag")
@run_argument
@click.argument("tags", metavar="[K[=V]]...", nargs=-1)
@click.option("--remove", multiple=True, metavar="K", help="Take this tag away.")
@json_option
@store_option
def command(
    *, run: str, tags: tuple[str, ...], remove: tuple[str, ...], as_json: bool, store: Path | None
) -> None:
    """Tag a run, also one that goes on; without a tag, show those that it has.

    \b
    playhead tag last reviewed env=prod
    playhead tag last --remove reviewed
    playhead list --tag reviewed

    K alone is K=true.
    """
    path = find_run(store, run)
    said: dict[str, str | None] = dict.fromkeys(remove)
    for one in tags:
        key, equals, value = one.partition("=")
        said[key] = value if equals else "true"
    now = change_tags(path, said) if said else dict(read_manifest(path).tags)
    if as_json:
        print_json(now)
    elif now:
        for key, value in now.items():
            click.echo(f"{one_line(key)}={one_line(value)}")
    else:
        click.echo(f"{path.name} has no tags.")

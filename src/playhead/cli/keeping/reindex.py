"""`playhead reindex`."""

from __future__ import annotations

from pathlib import Path

import click

from playhead import clock
from playhead.cli.common import home_of, json_option, overrides, print_json, store_option
from playhead.cli.progress import bar
from playhead.views.text import words


@click.command("reindex")
@json_option
@store_option
def command(*, as_json: bool, store: Path | None) -> None:
    """Make the library's catalogue anew from the tapes.

    Never needed in daily life: it keeps itself up to date, and comes back when it is deleted. Costs
    are counted again, at the prices of today's config.

    \b
    playhead reindex
    playhead reindex --store /mnt/team/tapes
    """
    from playhead.library.indexing import reindex

    began = clock.mono_ns()
    with bar("Reading runs") as progress:
        count = reindex(home_of(store), prices=overrides(), progress=progress)
    took_s = (clock.mono_ns() - began) / 1e9
    if as_json:
        print_json({"runs": count, "took_s": round(took_s, 3)})
        return
    noun = "run" if count == 1 else "runs"
    click.echo(f"Read {words.count(count)} {noun} in {words.duration(took_s)}.")

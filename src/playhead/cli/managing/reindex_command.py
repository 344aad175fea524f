"""`playhead reindex`."""

from __future__ import annotations

from pathlib import Path

import click

from playhead import clock
from playhead.cli.common import home_of, json_option, overrides, print_json, store_option
from playhead.cli.progress_line import bar
from playhead.views.text import words


@click.command("reindex")
@json_option
@store_option
def command(*, as_json: bool, store: Path | None) -> None:
    """Rebuild the library's catalogue from the tapes.

    Rarely needed: the catalogue is updated automatically, and rebuilt when it is missing. Costs are
    computed again, with the prices of the current config.

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

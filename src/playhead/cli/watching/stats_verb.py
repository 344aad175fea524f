"""`playhead stats`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from playhead.cli.common import home_of, json_option, overrides, print_json, store_option
from playhead.cli.progress import bar
from playhead.cli.watching.filters import filter_options


@click.command("stats")
@click.option(
    "--by",
    type=click.Choice(["model", "tool", "day", "name"]),
    default="model",
    show_default=True,
    help="What to sum up by.",
)
@filter_options
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="At most so many lines; 0: all.",
)
@json_option
@store_option
def command(
    *, by: str, wanted: dict[str, Any], limit: int, as_json: bool, store: Path | None
) -> None:
    """What the runs of this project come to: how many, how they ended, tokens, cost, times.

    \b
    playhead stats --since 30d
    playhead stats --by tool --status failed
    playhead stats --by day --all --json | jq '.groups[] | [.key, .cost_usd]'

    Times of models and tools are those of single calls, within 5 %; of days and names, those of runs.
    """
    from playhead.library.search import Search
    from playhead.library.stats import stats
    from playhead.library.telling import stats_json
    from playhead.views.text.sums import print_stats

    with bar("Reading new runs") as progress:
        found = stats(
            home_of(store), by=by, wanted=Search(**wanted), prices=overrides(), progress=progress
        )
    if as_json:
        print_json(stats_json(found))
    else:
        print_stats(found, limit=limit or None)

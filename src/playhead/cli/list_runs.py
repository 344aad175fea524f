"""`playhead list`."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import click

from playhead import clock, config
from playhead.cli.common import Duration, home_of, json_option, print_json, store_option
from playhead.library.catalogue import Entry, Filter, entries
from playhead.library.summary import Summary, summarise
from playhead.model import Prices
from playhead.project import project_of
from playhead.views.text.runs import print_runs


@click.command("list")
@click.option("--status", multiple=True, type=click.Choice(["running", "ok", "failed", "interrupted"]))
@click.option("--tag", "tags", multiple=True, metavar="K[=V]", help="Only runs with this tag.")
@click.option("--name", help="Only runs of this name; * and ? are wildcards.")
@click.option("--since", type=Duration(), help="Only runs younger than this: 2h, 7d.")
@click.option("--limit", type=int, default=20, show_default=True, help="At most so many; 0: all.")
@click.option("--all", "everything", is_flag=True, help="Runs of all projects.")
@json_option
@store_option
def command(
    status: tuple[str, ...], tags: tuple[str, ...], name: str | None, since: float | None,
    limit: int, everything: bool, as_json: bool, store: Path | None,
) -> None:  # fmt: skip
    """The runs that were recorded here, newest first.

    \b
    playhead list                         this project's
    playhead list --status failed --since 7d
    playhead list --tag env=ci --json | jq '.[].id'
    """
    home = home_of(store)
    wanted = Filter(
        project=None if everything or store is not None else str(project_of(Path.cwd())),
        statuses=frozenset(status),
        tags=tuple(_tag(one) for one in tags),
        name=name,
        since_ns=None if since is None else clock.wall_ns() - int(since * 1e9),
    )
    found = list(islice(entries(home, wanted), limit or None))
    prices = Prices(overrides=config.load().sections.get("prices", {}))
    rows = [(entry, summarise(entry.path, entry.status, prices=prices)) for entry in found]
    if as_json:
        print_json([row_json(entry, summary) for entry, summary in rows])
    else:
        print_runs(rows, home=home, everywhere=wanted.project is None)


def row_json(entry: Entry, summary: Summary) -> dict[str, Any]:
    manifest = entry.manifest
    duration = manifest.duration_s if manifest.duration_s is not None else summary.duration_s
    return {
        "id": entry.id,
        "name": manifest.name,
        "status": entry.status,
        "started_at": manifest.started_at,
        "duration_s": duration,
        "events": summary.events,
        "calls": summary.calls,
        "tokens": summary.tokens,
        "cost_usd": summary.cost_usd,
        "command": manifest.command,
        "tags": manifest.tags,
        "level": manifest.level,
        "project": manifest.project,
        "keep": manifest.keep,
        "failure": summary.failure,
        "last_seam": summary.last_seam,
        "lost": summary.lost,
        "problem": entry.problem,
    }


def _tag(text: str) -> tuple[str, str | None]:
    key, equals, value = text.partition("=")
    return key, value if equals else None

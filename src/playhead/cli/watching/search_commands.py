"""`playhead search` and `playhead stats`: find runs in the catalogue, and sum them up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from playhead import clock
from playhead.cli.common import (
    filter_options,
    home_to_read,
    json_option,
    overrides,
    print_json,
    store_option,
)
from playhead.cli.progress_line import bar
from playhead.library.fulltext import SCOPES, Scope


@click.command("search")
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--in", "scope", type=click.Choice(SCOPES), help="Search only there. Default: everywhere."
)
@filter_options
@click.option(
    "--sort",
    default="-started",
    show_default=True,
    help="Sort by started, cost, duration, tokens or name; a leading - sorts descending.",
)
@click.option(
    "--limit",
    "-n",
    type=click.IntRange(1, 1000),
    metavar="N",
    default=10,
    show_default=True,
    help="Maximum number of results.",
)
@click.option("--cursor", help="Continue after a page: the value of `next` in its JSON.")
@json_option
@store_option
def search_command(
    *,
    words: tuple[str, ...],
    scope: Scope | None,
    wanted: dict[str, Any],
    sort: str,
    limit: int,
    cursor: str | None,
    as_json: bool,
    store: Path | None,
) -> None:
    """Search runs whose text contains all WORDS, newest first.

    \b
    playhead search rate limit                     both words, anywhere in the run
    playhead search "rate limit" --in error        the exact phrase, in error messages
    playhead search 'refund*' --in prompt --status failed --since 7d
    playhead search timeout --model 'claude-*' --json | jq -r '.runs[].id'

    Case and accents are ignored; a trailing * matches any ending. --in prompt searches requests to
    models; response: answers and program output; tool: calls, commands and events with results;
    error: failures; about: name, command, tags and note.
    """
    from playhead.library.indexing import update
    from playhead.library.library_json import page_json
    from playhead.library.search import Search, query
    from playhead.views.text.run_lists import print_hits

    home, prices = home_to_read(store), overrides()
    typed = " ".join(_as_typed(one) for one in words)
    with bar("Reading new runs") as progress:
        update(home, prices=prices, progress=progress)
    asked = Search(text=typed, scope=scope, sort=sort, limit=limit, cursor=cursor, **wanted)
    page = query(home, asked, prices=prices)
    if as_json:
        print_json(page_json(page))
    else:
        print_hits(page, now_ns=clock.wall_ns(), everywhere=asked.project is None)


def _as_typed(word: str) -> str:
    """Quote a phrase again: the shell has removed the user's quotes."""
    return f'"{word}"' if " " in word.strip() and '"' not in word else word


@click.command("stats")
@click.option(
    "--by",
    type=click.Choice(["model", "tool", "day", "name"]),
    default="model",
    show_default=True,
    help="Group the runs by this.",
)
@filter_options
@click.option(
    "--limit",
    "-n",
    type=click.IntRange(min=0),
    metavar="N",
    default=20,
    show_default=True,
    help="Maximum number of groups; 0 for all.",
)
@json_option
@store_option
def stats_command(
    *, by: str, wanted: dict[str, Any], limit: int, as_json: bool, store: Path | None
) -> None:
    """Summarise the runs of this project: outcomes, tokens, cost and latency.

    \b
    playhead stats --since 30d
    playhead stats --by tool --status failed
    playhead stats --by day --all --json | jq '.groups[] | [.key, .cost_usd]'

    By model and tool, times are those of single calls, accurate to 5 %; by day and name, of whole runs.
    """
    from playhead.library.library_json import stats_json
    from playhead.library.search import Search
    from playhead.library.stats import stats
    from playhead.views.text.stats_table import print_stats
    from playhead.views.text.words import size
    from playhead.workspace.blob_collection import pool_size

    with bar("Reading new runs") as progress:
        found = stats(
            home_to_read(store),
            by=by,
            wanted=Search(**wanted),
            prices=overrides(),
            progress=progress,
        )
    contents = pool_size(home_to_read(store))
    if as_json:
        print_json({**stats_json(found), "store": {"file_bytes": contents}})
        return
    print_stats(found, limit=limit or None)
    if contents:
        click.echo(f"\n{size(contents)} of recorded files in the store (all projects)")

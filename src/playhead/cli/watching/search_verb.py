"""`playhead search`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from playhead import clock
from playhead.cli.common import home_of, json_option, overrides, print_json, store_option
from playhead.cli.progress import bar
from playhead.cli.watching.filters import filter_options
from playhead.library.fulltext import SCOPES, Scope


@click.command("search")
@click.argument("words", nargs=-1, required=True)
@click.option("--in", "scope", type=click.Choice(SCOPES), help="Only there. Default: everywhere.")
@filter_options
@click.option(
    "--sort",
    default="-started",
    show_default=True,
    help="started, cost, duration, tokens, name; - for the greatest first.",
)
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="At most so many."
)
@click.option("--cursor", help="The next page: `next` of --json.")
@json_option
@store_option
def command(
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
    """Runs in which all these words were asked, answered, done or complained of, newest first.

    \b
    playhead search rate limit                     both, anywhere in the run
    playhead search "rate limit" --in error        side by side
    playhead search 'refund*' --in prompt --status failed --since 7d
    playhead search timeout --model 'claude-*' --json | jq -r '.runs[].id'

    Letters are alike large or small, with accents or without; a star at the end of a word stands
    for more of it. Prompts are what models were asked, responses what they and the program said,
    tools every call, command and event with its result, about is name, command, tags and note.
    """
    from playhead.library.indexing import update
    from playhead.library.search import Search, query
    from playhead.library.telling import page_json
    from playhead.views.text.hits import print_hits

    home, prices = home_of(store), overrides()
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
    """The shell has taken the quotes from a phrase; where there are others, they say what is meant."""
    return f'"{word}"' if " " in word.strip() and '"' not in word else word

"""`playhead diff`."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from playhead import config
from playhead.cli.common import json_option, print_json, store_option
from playhead.cli.replaying.tapes import find_tape
from playhead.story import Prices, tell
from playhead.story.compare import compare
from playhead.tape.reader import Tape
from playhead.views.html.comparison import comparison_page
from playhead.views.text.comparison import print_comparison, print_first


@click.command("diff")
@click.argument("left", metavar="RUN")
@click.argument("right", metavar="RUN")
@click.option("--bisect", is_flag=True, help="Only the first step that matters.")
@click.option("--all", "every", is_flag=True, help="Steps that are the same, too.")
@click.option(
    "--exit-code", "with_code", is_flag=True, help="Leave with 3 if the trajectories differ."
)
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a page of one file.",
)
@json_option
@store_option
def command(
    left: str,
    right: str,
    bisect: bool,
    every: bool,
    with_code: bool,
    html: Path | None,
    as_json: bool,
    store: Path | None,
) -> None:
    """Two runs side by side: time, cost, tokens, calls, then step by step.

    \b
    playhead diff last~1 last
    playhead diff last~1 last --bisect     the first step that matters
    playhead diff A B --html diff.html     as a page to send
    playhead diff A B --json | jq '.steps[] | select(.kind != "same")'
    """
    prices = Prices(overrides=config.load().sections.get("prices", {}))
    one, other = (Tape(find_tape(store, asked)) for asked in (left, right))
    # Each may be a replay of the other, and have left its words there.
    stories = [
        tell(a, prices=prices, original=_original(a, b)) for a, b in ((one, other), (other, one))
    ]
    comparison = compare(*stories)
    if html is not None:
        page = comparison_page(comparison)
        html.write_text(page, encoding="utf-8", errors="backslashreplace")
    if as_json:
        members = dataclasses.asdict(comparison)
        print_json(
            {**members, "same": comparison.same, "first_difference": comparison.first_difference}
        )
    elif bisect:
        print_first(comparison)
    else:
        print_comparison(comparison, every=every)
    if with_code and not comparison.same:
        click.get_current_context().exit(3)


def _original(tape: Tape, other: Tape) -> Tape | None:
    return other if tape.manifest.replay_of == other.manifest.run else None

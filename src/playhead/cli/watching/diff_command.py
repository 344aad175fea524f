"""`playhead diff`."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from playhead import config
from playhead.cli.common import json_option, print_json, store_option
from playhead.cli.run_names import find_tape
from playhead.errors import UsageError
from playhead.exporters.files_json import trees_json
from playhead.host.private_files import write_export
from playhead.story import Prices, tell
from playhead.story.comparison.compare import compare
from playhead.story.comparison.tree_difference import TreeDifference, tree_difference
from playhead.tape.reader import Tape
from playhead.views.html_comparison import comparison_page
from playhead.views.text.comparison_text import print_comparison, print_first
from playhead.views.text.file_changes import print_trees
from playhead.workspace.history import read_history


@click.command("diff")
@click.argument("left", metavar="[RUN]", required=False)
@click.argument("right", metavar="[RUN]", required=False)
@click.option("--bisect", is_flag=True, help="Print only the first relevant difference.")
@click.option(
    "--patch", is_flag=True, help="Print how the resulting files differ, as unified diffs."
)
@click.option("--all", "every", is_flag=True, help="Include identical steps.")
@click.option(
    "--exit-code", "with_code", is_flag=True, help="Exit with 3 if the trajectories differ."
)
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the comparison as a single HTML file.",
)
@json_option
@store_option
def command(
    left: str | None,
    right: str | None,
    bisect: bool,
    patch: bool,
    every: bool,
    with_code: bool,
    html: Path | None,
    as_json: bool,
    store: Path | None,
) -> None:
    """Compare two runs: time, cost, tokens and calls, then step by step, then the files they left.

    \b
    playhead diff                          the last run and the one before it
    playhead diff last~2 last --bisect     the first relevant difference
    playhead diff A B --html diff.html     as an HTML file
    playhead diff A B --json | jq '.steps[] | select(.kind != "same")'
    """
    prices = Prices(overrides=config.load().sections.get("prices", {}))
    paths = [find_tape(store, asked) for asked in (left or "last~1", right or "last")]
    if paths[0] == paths[1] and right is None:
        raise UsageError(f"Both are run {paths[0].name}. Name two: `playhead diff last~1 last`.")
    one, other = (Tape(path) for path in paths)
    # Either may be a replay of the other, whose answers are then on the other tape.
    stories = [
        tell(a, prices=prices, original=_original(a, b)) for a, b in ((one, other), (other, one))
    ]
    comparison = compare(*stories)
    if html is not None:
        page = comparison_page(comparison)
        write_export(html, page)
    if as_json:
        members = dataclasses.asdict(comparison)
        files = _files(paths, patch=patch)
        print_json(
            {
                **members,
                "same": comparison.same,
                "first_difference": comparison.first_difference,
                "files": None if files is None else trees_json(files),
            }
        )
    elif bisect:
        print_first(comparison)
    else:
        print_comparison(comparison, every=every)
        if (files := _files(paths, patch=patch)) is not None:
            print_trees(files, patch=patch)
    if with_code and not comparison.same:
        click.get_current_context().exit(3)


def _original(tape: Tape, other: Tape) -> Tape | None:
    return other if tape.manifest.replay_of == other.manifest.run else None


def _files(paths: list[Path], *, patch: bool) -> TreeDifference | None:
    """Compare the files. None: neither run has files on its tape, or one is a replay, which keeps no files."""
    tapes = [Tape(path) for path in paths]
    if any(one.manifest.replay_of for one in tapes):
        return None
    left, right = (
        read_history(tape, path.parent.parent) for tape, path in zip(tapes, paths, strict=True)
    )
    if not any(one.tree for history in (left, right) for one in history.starts):
        return None
    return tree_difference(left, right, patches=patch)

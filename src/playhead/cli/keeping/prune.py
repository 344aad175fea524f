"""`playhead prune`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from playhead import clock, config
from playhead.cli.common import (
    Duration,
    Size,
    home_of,
    json_option,
    print_json,
    store_option,
)
from playhead.cli.keeping.retaining import configured_rules, rules_of
from playhead.cli.progress import counted
from playhead.errors import UsageError
from playhead.host.project import project_of
from playhead.library.catalogue import Filter, Library
from playhead.library.retention import (
    Doomed,
    Rules,
    Sized,
    clear_rubbish,
    plan,
    remove,
    size_of,
)
from playhead.views.text import words
from playhead.views.text.console import console
from playhead.views.text.pruning import plan_lines, weight


@click.command("prune")
@click.option("--older-than", type=Duration(), help="Delete runs older than this: 30d.")
@click.option(
    "--keep", type=click.IntRange(min=0), help="Keep the newest N in any case; alone: only those."
)
@click.option("--max-size", type=Size(), help="Delete the oldest until all take less: 5GB.")
@click.option("--all", "everything", is_flag=True, help="Runs of all projects.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@store_option
def command(
    *,
    older_than: float | None,
    keep: int | None,
    max_size: int | None,
    everything: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    store: Path | None,
) -> None:
    """Delete old runs of this project. Runs that go on, and kept ones, are never touched.

    Without a rule, those under [retention] in the config hold: older_than, keep, max_size; with
    auto = true there, they hold after every `playhead record`, too.

    \b
    playhead prune --older-than 30d --dry-run
    playhead prune --older-than 30d --keep 100 --max-size 5GB --yes
    """
    home = home_of(store)
    project = None if everything or store is not None else str(project_of(Path.cwd()))
    found = list(Library(home).entries(Filter(project=project)))
    runs = [Sized(entry=one, bytes=size_of(one.path)) for one in counted(found, "Weighing")]
    going = plan(runs, _rules(older_than, keep, max_size), clock.wall_ns())
    freed = 0
    if not dry_run:
        if going and not yes:
            _ask(going, runs)
        freed = clear_rubbish(home)
        going = list(remove(home, counted(going, "Deleting")))
    if as_json:
        print_json(_json(going, runs, dry_run=dry_run))
    elif dry_run:
        _print_plan(going, runs)
    else:
        left = f", and {words.size(freed)} that an earlier prune had left" if freed else ""
        click.echo(f"Deleted {weight(going)} of {weight(runs)}{left}.")


def _ask(going: Sequence[Doomed], runs: Sequence[Sized]) -> None:
    """A person is shown what goes, and asked; a script has to have said --yes."""
    if not sys.stdin.isatty():
        raise UsageError(
            f"This would delete {weight(going)}. Say --yes to do that, --dry-run to see them."
        )
    _print_plan(going, runs)
    click.confirm("Delete them?", abort=True, err=True)


def _print_plan(going: Sequence[Doomed], runs: Sequence[Sized]) -> None:
    out = console()
    for line in plan_lines(going, runs, clock.wall_ns()):
        out.print(line, no_wrap=True, overflow="crop")


def _rules(older_than: float | None, keep: int | None, max_size: int | None) -> Rules:
    if older_than is None and keep is None and max_size is None:
        return configured_rules(config.load())
    return rules_of(older_than, keep, max_size)


def _json(going: Sequence[Doomed], runs: Sequence[Sized], *, dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "bytes": sum(one.bytes for one in going),
        "bytes_before": sum(one.bytes for one in runs),
        "runs": [
            {
                "id": one.entry.id,
                "name": one.entry.manifest.name,
                "started_at": one.entry.manifest.started_at,
                "bytes": one.bytes,
                "why": one.why,
            }
            for one in going
        ],
    }

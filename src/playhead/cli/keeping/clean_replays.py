"""`playhead clean`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from playhead import clock
from playhead.cli.common import home_of, json_option, print_json, store_option
from playhead.cli.progress import counted
from playhead.errors import UsageError
from playhead.host.project import project_of
from playhead.library.catalogue import Filter, Library
from playhead.library.retention import Doomed, Sized, clear_rubbish, is_safe, remove, size_of
from playhead.views.text.console import console
from playhead.views.text.pruning import plan_lines, weight


@click.command("clean")
@click.option("--all", "everything", is_flag=True, help="Replays in all projects.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@store_option
def command(
    *, everything: bool, dry_run: bool, yes: bool, as_json: bool, store: Path | None
) -> None:
    """Delete the replays of this project. Those that go on, are kept or golden stay.

    \b
    playhead clean --dry-run
    playhead clean --yes
    """
    home = home_of(store)
    project = None if everything or store is not None else str(project_of(Path.cwd()))
    going = _replays(home, project)
    if going and not dry_run:
        if not yes:
            _ask(going)
        clear_rubbish(home)
        going = list(remove(home, counted(going, "Deleting")))
    if as_json:
        total = sum(one.bytes for one in going)
        ids = [one.entry.id for one in going]
        print_json({"dry_run": dry_run, "bytes": total, "runs": ids})
    elif dry_run:
        _print_plan(going)
    else:
        click.echo(f"Deleted {weight(going)}.")


def _replays(home: Path, project: str | None) -> list[Doomed]:
    """Oldest first."""
    found = [
        one
        for one in Library(home).entries(Filter(project=project))
        if one.manifest.replay_of is not None and not is_safe(one)
    ]
    weighed = counted(found[::-1], "Weighing")
    return [Doomed(entry=one, bytes=size_of(one.path), why="a replay") for one in weighed]


def _ask(going: list[Doomed]) -> None:
    if not sys.stdin.isatty():
        raise UsageError(
            f"This would delete {weight(going)}. Say --yes to do that, --dry-run to see them."
        )
    _print_plan(going)
    click.confirm("Delete them?", abort=True, err=True)


def _print_plan(going: list[Doomed]) -> None:
    out = console()
    runs = [Sized(entry=one.entry, bytes=one.bytes) for one in going]
    for line in plan_lines(going, runs, clock.wall_ns()):
        out.print(line, no_wrap=True, overflow="crop")

"""`playhead rm`: delete the runs that the user names. Rules that choose runs to delete are in `prune_commands`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from playhead import clock
from playhead.cli.common import home_to_read, json_option, print_json, store_option
from playhead.cli.run_names import find_run, runs_argument
from playhead.errors import UsageError
from playhead.library.annotate import remove
from playhead.library.catalogue import Entry, entry_at
from playhead.library.retention import is_safe, run_size
from playhead.views.text import words
from playhead.views.text.safe import one_line
from playhead.workspace.blob_collection import collect


@click.command("rm")
@runs_argument
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@json_option
@store_option
def command(*, runs: tuple[str, ...], yes: bool, as_json: bool, store: Path | None) -> None:
    """Delete runs for good. Running, kept and golden runs are refused.

    \b
    playhead rm last
    playhead rm 20261115-0711 20261115-0712 --yes
    playhead rm refund-agent          the newest run of that name

    To delete old runs by a rule, use `playhead prune`; for replays, `playhead clean`.
    """
    if not runs:
        raise click.UsageError("Name the run to delete: `playhead rm last`.")
    home = home_to_read(store)
    # By path: the same run may be named twice.
    found = {path: _deletable(path, home) for path in (find_run(store, one) for one in runs)}
    if not yes:
        _ask(list(found.values()))
    freed = {path.name: run_size(path) for path in found}
    for name in freed:
        remove(home, name)
    unneeded = collect(home)
    if as_json:
        print_json({"deleted": list(freed), "bytes": sum(freed.values()) + unneeded})
        return
    for name, size in freed.items():
        click.echo(f"Deleted {name} ({words.size(size)}).")


def _deletable(path: Path, home: Path) -> Entry:
    if path.parent.resolve() != (home / "runs").resolve():
        raise UsageError(f"{path} is not in the store {home}: delete the folder yourself.")
    entry = entry_at(path)
    if entry.status == "running":
        raise UsageError(f"{entry.id} is still running: delete it when it has ended.")
    if is_safe(entry):
        raise UsageError(
            f"{entry.id} is kept or golden. Allow its deletion first: `playhead keep {entry.id} --undo`, "
            f"or `playhead tag {entry.id} --remove golden`."
        )
    return entry


def _ask(entries: list[Entry]) -> None:
    noun = entries[0].id if len(entries) == 1 else f"{len(entries)} runs"
    if not sys.stdin.isatty():
        raise UsageError(
            f"This would delete {noun} for good. Add --yes to delete without confirmation."
        )
    for entry in entries:
        age = words.age(entry.manifest.started_ns, clock.wall_ns())
        click.echo(f"{entry.id}  {one_line(entry.manifest.name, 60)}  {age} ago", err=True)
    click.confirm(f"Delete {noun} for good?", abort=True, err=True)

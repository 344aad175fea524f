"""`playhead repair`."""

from __future__ import annotations

from pathlib import Path

import click

from playhead.cli.common import find_run, json_option, print_json, run_argument, store_option
from playhead.tape.care.repair import repair
from playhead.tape.store import announce
from playhead.views.text.console import console
from playhead.views.text.health import repair_lines


@click.command("repair")
@run_argument
@click.option("--force", is_flag=True, help="Also a run of another machine that says it goes on.")
@json_option
@store_option
def command(*, run: str, force: bool, as_json: bool, store: Path | None) -> None:
    """Save what can be read of a damaged tape. The damaged files are moved aside, never deleted.

    \b
    playhead verify last || playhead repair last
    """
    path = find_run(store, run)
    done = repair(path, force=force)
    announce(path)
    if not as_json:
        out = console()
        for line in repair_lines(path, done):
            out.print(line, soft_wrap=True)
        return
    print_json(
        {
            "id": path.name,
            "path": str(path),
            "changed": done.changed,
            "kept": done.kept,
            "lost": done.lost,
            "moved": [str(one) for one in done.moved],
            "damages": [str(one) for one in done.damages],
            "blobs_lost": done.blobs_lost,
        }
    )

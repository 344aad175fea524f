"""`playhead ui`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from playhead.cli.common import find_run, home_of, overrides, store_option
from playhead.cli.watching.serve_commands import needs_extra
from playhead.errors import UsageError
from playhead.host.project import project_of


@click.command("ui")
@click.argument("run", metavar="[RUN]", required=False)
@click.option("--all", "everything", is_flag=True, help="Include the runs of all projects.")
@store_option
def command(*, run: str | None, everything: bool, store: Path | None) -> None:
    """Browse, read, play and compare runs in the terminal.

    Works over ssh. The bottom line lists the most important keys; ? lists all.

    \b
    playhead ui
    playhead ui last           with this run open
    playhead ui --all          runs of all projects
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "`playhead ui` needs a terminal. `playhead list` and `playhead show` also write to a pipe."
        )
    try:
        from playhead.views.tui.run_source import RunSource
        from playhead.views.tui.tui_app import PlayheadApp
    except ImportError as error:
        raise needs_extra("tui") from error
    project = None if everything or store is not None else str(project_of(Path.cwd()))
    source = RunSource(home_of(store), project=project, prices=overrides())
    PlayheadApp(source, None if run is None else find_run(store, run)).run()

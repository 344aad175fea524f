"""`playhead ui`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from playhead.cli.common import find_run, home_of, overrides, store_option
from playhead.cli.watching.serving import needs_extra
from playhead.errors import UsageError
from playhead.host.project import project_of


@click.command("ui")
@click.argument("run", metavar="[RUN]", required=False)
@click.option("--all", "everything", is_flag=True, help="Runs of all projects.")
@store_option
def command(*, run: str | None, everything: bool, store: Path | None) -> None:
    """Runs on this terminal: find one, read it, play it, compare two.

    Works over ssh. The keys are shown at the bottom; ? shows all of them.

    \b
    playhead ui
    playhead ui last           with this run open
    playhead ui --all          runs of all projects
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "This needs a terminal. `playhead list` and `playhead show` write to a pipe."
        )
    try:
        from playhead.views.tui.app import Playhead
        from playhead.views.tui.library import Source
    except ImportError as error:
        raise needs_extra("tui") from error
    project = None if everything or store is not None else str(project_of(Path.cwd()))
    source = Source(home_of(store), project=project, prices=overrides())
    Playhead(source, None if run is None else find_run(store, run)).run()

"""`playhead pull`."""

from __future__ import annotations

from pathlib import Path

import click

from playhead.cli.common import home_of, json_option, print_json, store_option
from playhead.cli.progress_line import tally
from playhead.cli.remote_options import remote_option
from playhead.cli.shared_store import one_remote_run, shared_store
from playhead.errors import UsageError
from playhead.remote.pulling import pull
from playhead.remote.remote_runs import remote_ids
from playhead.tape.store import run_ids, run_path


@click.command("pull")
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Pull every run that is not here yet.")
@remote_option
@json_option
@store_option
def command(
    *,
    runs: tuple[str, ...],
    everything: bool,
    remote: str | None,
    as_json: bool,
    store: Path | None,
) -> None:
    """Pull runs from the shared store into the local one.

    \b
    playhead pull 20261115-071105-k3f9
    playhead pull --all --remote s3://tapes/shop

    RUN is an id, or the beginning of one. `show`, `replay`, `open`, `diff`, `export` and `batch` find a run of
    the shared store without this command; they keep it in a cache. Another person
    recorded the command of a pulled run, so a replay asks before it runs it.
    """
    if bool(runs) == everything:
        raise UsageError(
            "Name the runs to pull, or add --all. `playhead list --remote` shows them."
        )
    home, there = home_of(store), shared_store(remote)
    if everything:
        here = set(run_ids(home))
        wanted = [one for one in remote_ids(there) if one not in here]
    else:
        wanted = [one_remote_run(there, one) for one in runs]
    done = []
    for run in dict.fromkeys(wanted):
        is_here = run_path(home, run).is_dir()
        with tally("Pulling bytes") as tell:
            path = pull(run, there, home, tell)
        done.append({"run": run, "path": str(path), "remote": there.url})
        if not as_json:
            click.echo(f"{run}  is here already" if is_here else f"{run}  ← {there.url}")
    if as_json:
        print_json(done)
    elif not done:
        click.echo(f"All runs of {there.url} are already here.")

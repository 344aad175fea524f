"""`playhead push`, and the upload in the background that `record --push` starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from playhead import clock
from playhead.cli.common import home_to_read, json_option, print_json, store_option
from playhead.cli.progress_line import tally
from playhead.cli.remote_options import remote_option
from playhead.cli.run_names import find_run, runs_argument
from playhead.cli.shared_store import shared_store
from playhead.errors import PlayheadError, RemoteError, UsageError
from playhead.remote.objects import ObjectFolder
from playhead.remote.pushing import Pushed, push
from playhead.remote.upload_state import RunUpload, note_upload, uploads
from playhead.views.text import words

# Pauses between attempts in the background, in seconds: about half an hour in total.
_PAUSES = (1, 2, 5, 10, 30, 60, 120, 300, 600, 600)


@click.command("push")
@runs_argument
@click.option("--pending", is_flag=True, help="Push the runs whose upload is not complete.")
@click.option("--force", "-f", is_flag=True, help="Replace another run of the same id.")
@click.option(
    "--retry", is_flag=True, help="Retry for half an hour if the shared store cannot be reached."
)
@remote_option
@json_option
@store_option
def command(
    *,
    runs: tuple[str, ...],
    pending: bool,
    force: bool,
    retry: bool,
    remote: str | None,
    as_json: bool,
    store: Path | None,
) -> None:
    """Push runs into the shared store, where a team can read and replay them.

    \b
    playhead push last
    playhead push 20261115-071105-k3f9 --remote s3://tapes/shop
    playhead push --pending                 uploads that were interrupted

    A run becomes visible there when it is complete. The next push continues an interrupted one; contents that are
    already there are not sent again. Push again to share new tags, notes and the keep flag.
    """
    home = home_to_read(store)
    paths = [find_run(store, one) for one in runs or (() if pending else ("last",))]
    if pending:
        waiting = [run for run, one in uploads(home).items() if one.state != "pushed"]
        paths += [home / "runs" / run for run in waiting]
    there = shared_store(remote, for_writing=True)
    done: list[Pushed] = []
    for path in dict.fromkeys(paths):
        one = _pushed(path, there, force=force, pauses=_PAUSES if retry else ())
        done.append(one)
        if not as_json:
            click.echo(_line(one, there.url))
    if as_json:
        print_json([_members(one, there.url) for one in done])


def _pushed(path: Path, there: ObjectFolder, *, force: bool, pauses: tuple[int, ...]) -> Pushed:
    """Push one run; note the reason if it fails, for `list`."""
    rest = list(pauses)
    while True:
        try:
            with tally("Pushing bytes") as tell:
                return push(path, there, force=force, tell=tell)
        except RemoteError as error:
            _note_failure(path, there.url, error)
            if not rest:
                raise
            clock.sleep(rest.pop(0))
        except PlayheadError as error:
            _note_failure(path, there.url, error)
            raise


def _note_failure(path: Path, url: str, error: PlayheadError) -> None:
    if path.parent.name == "runs":
        note_upload(
            path.parent.parent, path.name, RunUpload(state="failed", remote=url, why=str(error))
        )


def push_in_background(run: Path, url: str) -> None:
    """Start an upload that outlives this process. Recording never waits for a network."""
    if run.parent.name != "runs":
        raise UsageError(f"{run} is not in a store, so it cannot be pushed.")
    note_upload(run.parent.parent, run.name, RunUpload(state="pending", remote=url))
    words_ = [sys.executable, "-m", "playhead", "push", run.name, "--retry", "--remote", url]
    subprocess.Popen(
        [*words_, "--store", str(run.parent.parent)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
        env={**os.environ, "PLAYHEAD_RECORD": "0"},
    )


def _line(one: Pushed, url: str) -> str:
    if not one.sent:
        return f"{one.run}  is in {url} already" if not one.is_new else f"{one.run}  → {url}"
    return f"{one.run}  → {url} · {words.size(one.sent)} sent of {words.size(one.size)}"


def _members(one: Pushed, url: str) -> dict[str, Any]:
    return {"run": one.run, "remote": url, "bytes": one.size, "sent": one.sent, "new": one.is_new}

"""`playhead list`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import click

from playhead import clock
from playhead.cli.common import (
    STATUSES,
    Duration,
    home_to_read,
    json_option,
    overrides,
    print_json,
    store_option,
    tag_of,
)
from playhead.cli.progress_line import counted, tally
from playhead.cli.remote_options import optional_remote
from playhead.host.project import project_of
from playhead.library.catalogue import Entry, Filter, Library
from playhead.library.library_json import run_json
from playhead.library.run_rows import Summary, is_golden, stamp_of, stamp_of_prices
from playhead.remote.upload_state import RunUpload, uploads
from playhead.views.text.safe import one_line


@click.command("list")
@click.option(
    "--status", multiple=True, type=click.Choice(STATUSES), help="Only runs with this status."
)
@click.option(
    "--failed-turns", is_flag=True, help="Only runs with turns that failed, whatever their status."
)
@click.option("--tag", "tags", multiple=True, metavar="K[=V]", help="Only runs with this tag.")
@click.option("--name", help="Only runs with this name; * and ? are wildcards.")
@click.option("--since", type=Duration(), help="Only runs started within this time: 2h, 7d.")
@click.option(
    "--limit",
    "-n",
    type=click.IntRange(min=0),
    metavar="N",
    default=20,
    show_default=True,
    help="Maximum number of runs; 0 for all.",
)
@click.option("--all", "everything", is_flag=True, help="Include the runs of all projects.")
@click.option("--replays", is_flag=True, help="Include replays.")
@click.option("--tree", is_flag=True, help="Show replays and forks below their original runs.")
@optional_remote
@json_option
@store_option
def command(
    *,
    status: tuple[str, ...],
    failed_turns: bool,
    tags: tuple[str, ...],
    name: str | None,
    since: float | None,
    limit: int,
    everything: bool,
    replays: bool,
    tree: bool,
    remote: str | None,
    as_json: bool,
    store: Path | None,
) -> None:
    """List the runs of this project, newest first.

    With --store, list every run of that store.

    \b
    playhead list --status failed --since 7d
    playhead list --failed-turns            errors that the program caught
    playhead list --tag env=ci --name 'refund-*' --all
    playhead list --tree                    with replays and forks
    playhead list --remote                  runs of the shared store
    playhead list --json --limit 0 | jq 'map(.cost_usd) | add'
    """
    home = home_to_read(store)
    wanted = Filter(
        project=None if everything or store is not None else str(project_of(Path.cwd())),
        statuses=frozenset(status),
        tags=tuple(tag_of(one) for one in tags),
        name=name,
        since_ns=None if since is None else clock.wall_ns() - int(since * 1e9),
    )
    if remote is not None:
        from playhead.cli.sharing.remote_list import list_remote

        anywhere = replace(wanted, project=None, replays=replays)
        list_remote(home, remote, anywhere, limit=limit, as_json=as_json)
        return
    with tally("Looking at new runs") as progress:
        library = Library(home, progress)
        library.scan()
    if tree and not as_json:
        from playhead.views.text.run_lists import print_families

        everyone = list(library.entries(wanted))
        print_families(everyone, limit=limit or None, now_ns=clock.wall_ns())
        return
    meant = (one for one in library.entries(wanted) if replays or tree or _is_own(one))
    rows = _rows(library, meant, limit, failed_turns=failed_turns)
    sent = uploads(home)
    if as_json:
        print_json([row_json(entry, summary, sent.get(entry.id)) for entry, summary in rows])
        return
    _print_rows(rows, home, wanted, is_filtered=failed_turns)
    _print_not_pushed(sent)


def _print_rows(
    rows: Sequence[tuple[Entry, Summary]], home: Path, wanted: Filter, *, is_filtered: bool
) -> None:
    from playhead.views.text.run_lists import print_runs

    print_runs(
        rows,
        home=home,
        everywhere=wanted.project is None,
        is_filtered=is_filtered or wanted != Filter(project=wanted.project),
        now_ns=clock.wall_ns(),
    )


def _rows(
    library: Library, meant: Iterator[Entry], limit: int, *, failed_turns: bool
) -> list[tuple[Entry, Summary]]:
    """Return the first `limit` runs with their summaries; 0 means all. Reads on while `failed_turns` leaves too few."""
    rows: list[tuple[Entry, Summary]] = []
    while found := list(islice(meant, limit or None)):
        these = zip(found, summaries(library, found), strict=True)
        rows += [row for row in these if not failed_turns or row[1].failed_turns]
        if not failed_turns or (limit and len(rows) >= limit):
            break
    return rows[: limit or None]


def _print_not_pushed(sent: Mapping[str, RunUpload]) -> None:
    """Name the runs that still have to be uploaded, and why the last try failed."""
    waiting = [one for one in sent.values() if one.state != "pushed"]
    if not waiting:
        return
    noun = "run is" if len(waiting) == 1 else "runs are"
    click.echo(f"{len(waiting)} {noun} not pushed yet: playhead push --pending", err=True)
    if why := next((one.why for one in waiting if one.why), ""):
        click.echo(one_line(why, 300), err=True)


def summaries(library: Library, found: Sequence[Entry]) -> list[Summary]:
    """Cached summaries, and new ones for runs that have changed."""
    own = overrides()
    prices = stamp_of_prices(own)
    stamps = [stamp_of(entry.path, prices) for entry in found]
    known = [library.summary(entry, stamp) for entry, stamp in zip(found, stamps, strict=True)]
    missing = [at for at, summary in enumerate(known) if summary is None]
    if missing:
        # Imported only when a tape must be read: the story costs a tenth of a second of imports.
        from playhead.library.digest import summarise
        from playhead.story import Prices

        for at in counted(missing, "Reading new runs"):
            known[at] = summarise(found[at].path, prices=Prices(overrides=own))
        made = {found[at].id: (stamps[at], known[at] or Summary()) for at in missing}
        library.keep_summaries(made)
    return [summary or Summary() for summary in known]


def row_json(entry: Entry, summary: Summary, upload: RunUpload | None = None) -> dict[str, Any]:
    manifest = entry.manifest
    return {
        **run_json(entry, summary),
        "keep": manifest.keep,
        "path": str(entry.path),
        "upload": None if upload is None else upload.state,
        "pulled_from": manifest.extra.get("pulled_from"),
    }


def _is_own(entry: Entry) -> bool:
    """Return whether a run is listed by default: originals, and replays that were accepted as golden."""
    return entry.manifest.replay_of is None or is_golden(entry.manifest)

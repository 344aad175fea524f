"""The runs of the shared store for `list --remote` and `prune --remote`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

import click

from playhead import clock
from playhead.cli.common import print_json
from playhead.cli.shared_store import shared_store
from playhead.library.catalogue import Entry, Filter
from playhead.library.retention import Sized
from playhead.remote.remote_runs import RemoteRun, remote_json, remote_runs
from playhead.tape.annotations import read_annotations
from playhead.tape.store import run_ids
from playhead.views.text import words
from playhead.views.text.safe import one_line


def list_remote(home: Path, url: str, wanted: Filter, *, limit: int, as_json: bool) -> None:
    """Print the runs of the shared store, newest first, and which of them are here."""
    there = shared_store(url or None)
    found, problems = remote_runs(there, home)
    by_id = {one.id: one for one in found}
    here = set(run_ids(home))
    rows = [by_id[one.id] for one in islice(entries_of(found, wanted, home), limit or None)]
    if as_json:
        print_json([remote_json(one, there.url, is_here=one.id in here) for one in rows])
    elif not rows:
        click.echo(f"No runs in {there.url}.")
    else:
        click.echo("".join(_line(one, is_here=one.id in here) for one in rows), nl=False)
    for problem in problems:
        click.echo(f"playhead: {one_line(problem, 300)}", err=True)


def entries_of(found: Iterable[RemoteRun], wanted: Filter, home: Path) -> Iterable[Entry]:
    """Return the runs as entries of a catalogue. A run that is marked to keep on this machine is kept there, too."""
    for one in found:
        manifest = one.manifest
        has = manifest.tags
        if not all(key in has and value in (None, has[key]) for key, value in wanted.tags):
            continue
        if wanted.name is not None and not fnmatchcase(manifest.name, wanted.name):
            continue
        if wanted.statuses and manifest.status not in wanted.statuses:
            continue
        if wanted.since_ns is not None and manifest.started_ns < wanted.since_ns:
            continue
        if not wanted.replays and manifest.replay_of is not None:
            continue
        if read_annotations(home / "runs" / one.id).keep:
            manifest = replace(manifest, keep=True)
        yield Entry(path=Path(one.id), manifest=manifest, status=manifest.status)


def sized(entries: Iterable[Entry], found: Sequence[RemoteRun]) -> list[Sized]:
    sizes = {one.id: one.commit.size for one in found}
    return [Sized(entry=one, bytes=sizes[one.id]) for one in entries]


def _line(one: RemoteRun, *, is_here: bool) -> str:
    age = words.age(one.manifest.started_ns, clock.wall_ns())
    parts = [
        f"{one.id:<24}",
        f"{one_line(one.manifest.name, 24):<24}",
        f"{one.manifest.status:<11}",
        f"{age:>4}",
        f"{words.size(one.commit.size):>8}",
        one_line(one.commit.pushed_by, 40),
    ]
    if is_here:
        parts.append("(here)")
    return "  ".join(parts) + "\n"

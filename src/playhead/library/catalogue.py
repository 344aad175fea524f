"""Runs of a store by project, status, tag, name and age, newest first. Knows manifests and the
index that remembers them; reads no tape.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from playhead.errors import PlayheadError
from playhead.events import Status
from playhead.library.index import Index, LightRow, Row
from playhead.library.summary import Summary
from playhead.tape import store
from playhead.tape.manifest import (
    Manifest,
    SegmentSummary,
    from_members,
    read_manifest,
    status_of,
)
from playhead.tape.store import MANIFEST as FILE


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A run in the catalogue. `problem`: its manifest cannot be read; the run is there all the
    same.
    """

    path: Path
    manifest: Manifest
    status: Status
    problem: str | None = None

    @property
    def id(self) -> str:
        return self.path.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What to list. Empty: everything."""

    project: str | None = None
    statuses: frozenset[str] = frozenset()
    tags: tuple[tuple[str, str | None], ...] = ()
    name: str | None = None
    since_ns: int | None = None
    replays: bool = True


class Library:
    """The runs of one store, as they are when it is first asked."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._runs = home / "runs"

    @cached_property
    def _index(self) -> Index | None:
        """Brought up to date; None: nothing was ever recorded here."""
        if not self._runs.is_dir():
            return None
        index = Index(self.home)
        known = index.stamps()
        there = {run: _stamp(f"{self._runs}/{run}/{FILE}") for run in store.run_ids(self.home)}
        changed = (_row(self._runs / run, at) for run, at in there.items() if known.get(run) != at)
        index.update(changed, known.keys() - there.keys())
        return index

    def entries(self, wanted: Filter) -> Iterator[Entry]:
        """Newest first. Lazy: who takes twenty has twenty manifests decoded."""
        index = self._index
        if index is None:
            return
        for row in index.newest_first(project=wanted.project, since_ns=wanted.since_ns):
            if not _fits(row, wanted):
                continue
            entry = _entry(self._runs / row[0], index.manifest(row[0]), row[7])
            # Only now is it known whether a run that says so is still running.
            if not wanted.statuses or entry.status in wanted.statuses:
                yield entry

    def summary(self, entry: Entry, stamp: str) -> Summary | None:
        """What was made of this very state of the run earlier, if anything was."""
        if self._index is None:
            return None
        made_of, raw = self._index.summary(entry.id)
        if raw is None or made_of != stamp:
            return None
        try:
            return Summary(**json.loads(raw))
        except (TypeError, ValueError):
            return None

    def keep_summaries(self, made: Mapping[str, tuple[str, Summary]]) -> None:
        if self._index is not None:
            self._index.keep_summaries(
                {
                    run: (stamp, json.dumps(asdict(summary)).encode("utf-8", "backslashreplace"))
                    for run, (stamp, summary) in made.items()
                }
            )


def entries(home: Path, wanted: Filter) -> Iterator[Entry]:
    """Newest first."""
    return Library(home).entries(wanted)


def entry_at(path: Path) -> Entry:
    """The entry of a run wherever it lies, in a store or not."""
    try:
        manifest = read_manifest(path)
    except PlayheadError as error:
        return _broken(path, str(error))
    return Entry(path=path, manifest=manifest, status=status_of(manifest))


def _entry(path: Path, raw: bytes, problem: str | None) -> Entry:
    if problem is not None:
        return _broken(path, problem)
    manifest = from_members(json.loads(raw), path / FILE)
    return Entry(path=path, manifest=manifest, status=status_of(manifest))


def _broken(path: Path, problem: str) -> Entry:
    blank = Manifest(run=path.name, name="?", status="interrupted")
    return Entry(path=path, manifest=blank, status="interrupted", problem=problem)


def _stamp(manifest: str) -> str:
    """Changes whenever the manifest is replaced. One stat a run: ten thousand take 50 ms."""
    try:
        state = os.stat(manifest)  # noqa: PTH116  Path.stat costs three times as much
    except OSError:
        return "none"
    return f"{state.st_mtime_ns} {state.st_size} {state.st_ino}"


def _row(run: Path, stamp: str) -> Row:
    """A manifest as a row. One that cannot be read becomes a row that says why."""
    try:
        manifest = read_manifest(run)
        raw = json.dumps(_members(manifest)).encode()
    except (PlayheadError, ValueError) as error:
        return Row(
            id=run.name, stamp=stamp, started_ns=_changed_ns(run), status="interrupted",
            project="", name="?", tags="{}", replay_of=None, manifest=b"", problem=str(error),
        )  # fmt: skip
    return Row(
        id=run.name,
        stamp=stamp,
        started_ns=manifest.started_ns,
        status=manifest.status,
        project=manifest.project,
        name=manifest.name,
        tags=json.dumps(manifest.tags),
        replay_of=manifest.replay_of,
        manifest=raw,
        problem=None,
    )


def _members(manifest: Manifest) -> dict[str, Any]:
    """As `asdict` would have it, in a tenth of the time: there may be ten thousand to read."""
    members = {name: getattr(manifest, name) for name in Manifest.__slots__}
    members["segments"] = [
        {name: getattr(one, name) for name in SegmentSummary.__slots__} for one in manifest.segments
    ]
    return {**members, **members.pop("extra")}


def _changed_ns(run: Path) -> int:
    """When a run that cannot say so itself was last touched: its place in the order of time."""
    try:
        return run.stat().st_mtime_ns
    except OSError:
        return 0


def _fits(row: LightRow, wanted: Filter) -> bool:
    _, _, status, _, name, tags, replay_of, _ = row
    # A run that claims to go on may turn out to be interrupted.
    if wanted.statuses and status not in wanted.statuses and status != "running":
        return False
    if wanted.name is not None and not fnmatchcase(name, wanted.name):
        return False
    if not wanted.replays and replay_of is not None:
        return False
    if not wanted.tags:
        return True
    has: dict[str, Any] = json.loads(tags)
    return all(key in has and value in (None, str(has[key])) for key, value in wanted.tags)

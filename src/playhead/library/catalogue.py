"""Runs of a store by project, status, tag, name and age. Knows manifests; reads no tape for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from playhead.errors import TapeError
from playhead.events import Status
from playhead.tape import store
from playhead.tape.manifest import Manifest, read_manifest, status_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A run in the catalogue. `problem`: its manifest cannot be read; the run is there all the same."""

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
    replays: bool = field(default=True)

    def accepts(self, entry: Entry) -> bool:
        manifest = entry.manifest
        if self.project is not None and manifest.project != self.project and entry.problem is None:
            return False
        if self.statuses and entry.status not in self.statuses:
            return False
        if self.name is not None and not fnmatchcase(manifest.name, self.name):
            return False
        if self.since_ns is not None and manifest.started_ns < self.since_ns:
            return False
        if not self.replays and manifest.replay_of is not None:
            return False
        return all(_has(manifest, key, value) for key, value in self.tags)


def _has(manifest: Manifest, key: str, value: str | None) -> bool:
    return key in manifest.tags and (value is None or manifest.tags[key] == value)


def entries(home: Path, wanted: Filter) -> Iterator[Entry]:
    """Newest first. Lazy: who takes twenty reads twenty."""
    for path in store.runs(home):
        entry = entry_at(path)
        if wanted.accepts(entry):
            yield entry


def entry_at(path: Path) -> Entry:
    try:
        manifest = read_manifest(path)
    except TapeError as error:
        blank = Manifest(run=path.name, name="?", status="interrupted")
        return Entry(path=path, manifest=blank, status="interrupted", problem=str(error))
    return Entry(path=path, manifest=manifest, status=status_of(manifest))

"""Making a run the golden one of its kind. Knows who wears the mark; reads no tape."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from playhead.library.catalogue import Entry, Filter, Library
from playhead.library.golden import SUPERSEDES, TAG, is_golden
from playhead.tape.manifest import Manifest, read_manifest, write_manifest
from playhead.tape.marks import mark


def crown(home: Path, run: Path) -> list[str]:
    """Make this run the golden one of its kind; the ids of those that were it until now."""
    manifest = read_manifest(run)
    old = [entry for entry in _predecessors(home, manifest) if entry.path.name != run.name]
    named = [entry.id for entry in old] or ([manifest.replay_of] if manifest.replay_of else [])
    # The new one first: where this ends half way there are two golden runs, never none.
    extra = {**manifest.extra, SUPERSEDES: named}
    write_manifest(run, dataclasses.replace(manifest, extra=extra))
    mark(run, tags={TAG: "true"})
    for entry in old:
        mark(entry.path, tags={TAG: None})
    return [entry.id for entry in old if is_golden(entry.manifest)]


def _predecessors(home: Path, manifest: Manifest) -> Iterator[Entry]:
    """The run that it is a replay of, and golden ones of the same name and project."""
    for entry in Library(home).entries(Filter()):
        theirs = entry.manifest
        if entry.problem is not None:
            continue
        alike = (theirs.name, theirs.project) == (manifest.name, manifest.project)
        if is_golden(theirs) and (alike or entry.id == manifest.replay_of):
            yield entry

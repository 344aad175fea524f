"""The run that others are measured by. Knows the mark on a manifest and who wears it; reads no tape.

A replay has the tags of its original: a replay is golden only where it was accepted, which
`supersedes` says.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from pathlib import Path

from playhead.library.catalogue import Entry, Filter, Library
from playhead.tape.manifest import Manifest, read_manifest, write_manifest
from playhead.tape.single import SUFFIX

TAG = "golden"
SUPERSEDES = "supersedes"
# Where nobody keeps tapes of their own, and where looking takes long.
_NOT_LOOKED_AT = frozenset({"node_modules", "__pycache__", "site-packages", "venv"})


def is_golden(manifest: Manifest) -> bool:
    if manifest.tags.get(TAG) != "true":
        return False
    return manifest.replay_of is None or SUPERSEDES in manifest.extra


def crown(home: Path, run: Path) -> list[str]:
    """Make this run the golden one of its kind; the ids of those that were it until now."""
    manifest = read_manifest(run)
    old = [entry for entry in _predecessors(home, manifest) if entry.path.name != run.name]
    named = [entry.id for entry in old] or ([manifest.replay_of] if manifest.replay_of else [])
    # The new one first: where this ends half way there are two golden runs, never none.
    write_manifest(
        run,
        dataclasses.replace(
            manifest,
            tags={**manifest.tags, TAG: "true"},
            extra={**manifest.extra, SUPERSEDES: named},
        ),
    )
    for entry in old:
        tags = {name: value for name, value in entry.manifest.tags.items() if name != TAG}
        write_manifest(entry.path, dataclasses.replace(entry.manifest, tags=tags))
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


def tapes_of(folder: Path, run_id: str) -> list[Path]:
    """The single-file tapes below that folder that were made of this run."""
    return [path for path in single_tapes(folder) if id_of(path) == run_id]


def single_tapes(folder: Path) -> Iterator[Path]:
    """Sorted; hidden folders and those of packages are left out."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(
            one for one in folders if not one.startswith(".") and one not in _NOT_LOOKED_AT
        )
        yield from (Path(place, one) for one in sorted(files) if one.endswith(SUFFIX))


def id_of(path: Path) -> str | None:
    """The run that a single-file tape was made of; None: it does not say."""
    said = head_of(path).get("run")
    return said if isinstance(said, str) else None


def head_of(path: Path) -> dict[str, object]:
    """The first line of a single-file tape; empty: it has none that can be read."""
    try:
        with path.open("rb") as file:
            head = json.loads(file.readline(1_000_000))
    except (OSError, ValueError, RecursionError):
        return {}
    return head if isinstance(head, dict) else {}

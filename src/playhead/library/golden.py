"""The run that others are measured by. Knows the mark on a manifest and who wears it; reads no tape.

A replay has the tags of its original: a replay is golden only where it was accepted, which
`supersedes` says.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from playhead.tape.manifest import Manifest
from playhead.tape.single import SUFFIX

TAG = "golden"
SUPERSEDES = "supersedes"
# Where nobody keeps tapes of their own, and where looking takes long.
_NOT_LOOKED_AT = frozenset({"node_modules", "__pycache__", "site-packages", "venv"})


def is_golden(manifest: Manifest) -> bool:
    if manifest.tags.get(TAG) != "true":
        return False
    return manifest.replay_of is None or SUPERSEDES in manifest.extra


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

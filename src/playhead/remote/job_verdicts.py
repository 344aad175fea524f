"""Verdicts of batch jobs in a shared store: `batches/BATCH/TAPE-ROUND.json`. Knows JSON objects; not what a verdict is.

A worker of a cluster writes the verdict of each job here. If the engine repeats the job, or the batch is resumed, the
verdict is read and the tape is not replayed again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from playhead.remote.objects import ObjectFolder

FOLDER = "batches"
_LARGEST = 16 * 1024 * 1024


def write_report(
    remote: ObjectFolder, batch: str, tape: str, number: int, members: Mapping[str, Any]
) -> None:
    remote.put(_path(batch, tape, number), json.dumps(members).encode())


def read_report(remote: ObjectFolder, batch: str, tape: str, number: int) -> dict[str, Any] | None:
    """Return the verdict of an earlier attempt. None: there is none."""
    return _decoded(remote.get(_path(batch, tape, number), _LARGEST))


def reports_of(remote: ObjectFolder, batch: str) -> list[dict[str, Any]]:
    """Return the verdicts of all jobs of a batch so far."""
    paths = [one.path for one in remote.list(f"{FOLDER}/{batch}")]
    found = (_decoded(remote.get(path, _LARGEST)) for path in paths)
    return [one for one in found if one is not None]


def _path(batch: str, tape: str, number: int) -> str:
    return f"{FOLDER}/{batch}/{hashlib.sha256(tape.encode()).hexdigest()[:32]}-{number}.json"


def _decoded(raw: bytes | None) -> dict[str, Any] | None:
    try:
        found = None if raw is None else json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None

"""Rebuild the manifest of a run from its tape. Pure: rows in, manifest out.

Used where the manifest is missing or damaged. Where tape and manifest disagree, the tape is right.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from playhead import clock
from playhead.events import GAP, RUN_END, RUN_START, SEGMENT_END, SEGMENT_START, Event
from playhead.tape.manifest import Manifest, SegmentSummary, from_members
from playhead.tape.reading.segment_rows import Row

_FROM_START = (
    *("run", "name", "tags", "level", "command", "cwd", "project", "git_commit", "playhead"),
    *("redacted", "replay_of"),
)
_FROM_SEGMENT = ("run", "generation", "level", "redacted", "pid", "birth", "host", "python")


class _Tally:
    """Counts of one segment so far."""

    def __init__(self) -> None:
        self.events = 0
        self.bytes = 0
        self.crc = ""
        # A segment that ended has recorded its losses itself; for one that was killed, only gaps do.
        self.said: int | None = None
        self.gaps = 0

    def add(self, event: Event, raw: bytes) -> None:
        self.events += 1
        self.bytes += len(raw) + 1
        self.crc = raw[-10:-2].decode("ascii", "replace")
        if event.ours and event.kind == GAP:
            self.gaps += _count(event, "lost")
        elif event.ours and event.kind == SEGMENT_END:
            self.said = _count(event, "lost")

    @property
    def lost(self) -> int:
        return self.gaps if self.said is None else max(self.said, self.gaps)


def manifest_from(rows: Iterable[Row], *, folder: str) -> Manifest:
    """Return the manifest as the recorder would have written it, as far as the tape allows. `folder` is the last resort
    for the run's id. Without a `run.end` the status is `running`: see `status_of`.
    """
    members: dict[str, Any] = {"run": folder, "status": "running"}
    tallies: dict[str, _Tally] = {}
    started = 0
    for event, _, raw in rows:
        tallies.setdefault(event.segment, _Tally()).add(event, raw)
        started = started or event.wall
        if event.user or not isinstance(event.data, dict):
            continue
        if event.kind == SEGMENT_START and _is_root(event, members):
            members.update(_picked(event.data, _FROM_SEGMENT))
        elif event.kind == RUN_START:
            # A resumed run is running again.
            members.update(_picked(event.data, _FROM_START), status="running", ended_at=None)
            members.setdefault("started_ns", event.wall)
        elif event.kind == RUN_END:
            members.update(_ending(event, members.get("started_ns", started)))
    if not isinstance(members["run"], str):
        members["run"] = folder
    members.setdefault("started_ns", started)
    members["started_at"] = clock.iso(max(0, min(_whole(members["started_ns"]), _LATEST)))
    members["events"] = sum(tally.events for tally in tallies.values())
    members["lost"] = sum(tally.lost for tally in tallies.values())
    manifest = from_members(members, Path(folder))
    return _with_segments(manifest, tallies)


# The last moment of a calendar with four-digit years.
_LATEST = 253_402_300_799 * 1_000_000_000


def _is_root(event: Event, members: dict[str, Any]) -> bool:
    """Return whether this is the run's own process: the first of its generation."""
    generation = event.data.get("generation")
    known = members.get("generation")
    return known is None or (type(generation) is int and type(known) is int and generation > known)


def _ending(event: Event, started: Any) -> dict[str, Any]:
    took = event.data.get("took_ns")
    if type(took) is not int:
        took = event.wall - _whole(started)
    return {
        **_picked(event.data, ("status", "exit_code")),
        "ended_at": clock.iso(max(0, min(event.wall, _LATEST))),
        "duration_s": round(took / 1e9, 6),
        "error": _short(event.data.get("error")),
    }


def _short(error: Any) -> dict[str, Any] | None:
    """Return type and message, as a list of runs shows them."""
    if not isinstance(error, dict):
        return None
    return {"type": str(error.get("$exception")), "message": error.get("message")}


def _picked(data: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: data[name] for name in names if name in data}


def _count(event: Event, name: str) -> int:
    return _whole(event.data.get(name)) if isinstance(event.data, dict) else 0


def _whole(value: Any) -> int:
    return value if type(value) is int else 0


def _with_segments(manifest: Manifest, tallies: dict[str, _Tally]) -> Manifest:
    return dataclasses.replace(
        manifest,
        segments=[
            SegmentSummary(name=name, events=one.events, bytes=one.bytes, crc=one.crc)
            for name, one in tallies.items()
        ],
    )

"""The manifest of a run: a summary that is available without reading the tape. Knows one JSON file.

Written when the run starts and replaced atomically when it ends, so that there is always a complete one.
Where tape and manifest disagree, the tape is right.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playhead import clock
from playhead.errors import TapeDamaged, TapeTooNew
from playhead.events import Level, Status
from playhead.host.private_files import read_regular, replace_file
from playhead.tape.annotations import NONE, Annotations, read_annotations
from playhead.tape.format import FORMAT_VERSION
from playhead.tape.store import MANIFEST

FILE = MANIFEST
# The member of `extra` that holds the user's note about the run.
NOTE = "note"
# The members of `extra` that hold the comments, and the authors of tags and notes.
COMMENTS, AUTHORS = "comments", "authors"
# The member of `extra` that holds what the program started with: its configuration, the tasks done before.
DETAILS = "details"
# The member of `extra` that holds the verdict on a replay or a fork.
VERDICT = "verdict"
# The member of `extra` of an unpacked single-file tape: whether the file had its checksum (`right`, `wrong`, `none`).
FILE_CHECKSUM = "file_checksum"
# Our manifests have a few kilobytes; a larger file in an untrusted folder is not read into memory.
_LARGEST = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentSummary:
    """The end of a segment, so that a tail that is cut off later is detected."""

    name: str
    events: int
    bytes: int
    crc: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The summary for a list of runs, and the facts that tell whether a run is still in progress."""

    run: str
    format: int = FORMAT_VERSION
    name: str = ""
    status: Status = "running"
    started_at: str = ""
    started_ns: int = 0
    ended_at: str | None = None
    duration_s: float | None = None
    level: Level = "full"
    redacted: bool = True
    command: list[str] = field(default_factory=list)
    cwd: str = ""
    project: str = ""
    git_commit: str | None = None
    tags: dict[str, str] = field(default_factory=dict)
    host: str = ""
    pid: int = 0
    birth: str = ""
    python: str = ""
    playhead: str = ""
    generation: int = 0
    exit_code: int | None = None
    error: dict[str, Any] | None = None
    events: int = 0
    lost: int = 0
    segments: list[SegmentSummary] = field(default_factory=list)
    keep: bool = False
    replay_of: str | None = None
    # Members that a later Playhead or another tool wrote: kept and written back.
    extra: dict[str, Any] = field(default_factory=dict)


def write_manifest(run: Path, manifest: Manifest) -> None:
    """Replace the manifest atomically: a reader sees the old one or the new one, never half."""
    members = dataclasses.asdict(manifest)
    members.update(members.pop("extra"))
    raw = json.dumps(members, ensure_ascii=False, indent=1).encode("utf-8", "backslashreplace")
    replace_file(run / FILE, raw + b"\n")


def read_manifest(run: Path) -> Manifest:
    """Return the manifest of the run in that folder, with the annotations that people have added since.

    TapeDamaged if it is missing or invalid.
    """
    path = f"{run}/{FILE}"
    try:
        members = json.loads(read_regular(path, _LARGEST))
    except FileNotFoundError:
        raise TapeDamaged(
            f"{run} has no {FILE}. `playhead repair {run}` makes one from the tape."
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise TapeDamaged(
            f"{path} cannot be read ({error}). `playhead repair {run}` makes a new one."
        ) from None
    return marked(from_members(members, run), read_annotations(run))


def marked(manifest: Manifest, marks: Annotations) -> Manifest:
    if marks is NONE:
        return manifest
    tags = {**manifest.tags, **marks.tags}
    said: dict[str, Any] = {} if marks.note is None else {NOTE: marks.note}
    if marks.comments or COMMENTS in manifest.extra:
        said[COMMENTS] = [dataclasses.asdict(one) for one in marks.comments if one.text is not None]
    if marks.authors:
        said[AUTHORS] = dict(marks.authors)
    if marks.details:
        said[DETAILS] = {**_details(manifest), **marks.details}
    return dataclasses.replace(
        manifest,
        name=manifest.name if marks.name is None else marks.name,
        tags={key: value for key, value in tags.items() if value is not None},
        keep=manifest.keep if marks.keep is None else marks.keep,
        extra={**manifest.extra, **said},
    )


def _details(manifest: Manifest) -> dict[str, Any]:
    found = manifest.extra.get(DETAILS)
    return found if isinstance(found, dict) else {}


def from_members(members: Any, run: Path) -> Manifest:
    if not isinstance(members, dict) or not isinstance(members.get("run"), str):
        raise TapeDamaged(
            f"{run / FILE} is not a manifest. `playhead repair {run}` makes a new one."
        )
    version = members.get("format", 0)
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise TapeTooNew(found=version, known=FORMAT_VERSION)
    known: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for name, value in members.items():
        shape = _SHAPES.get(name)
        if shape is None:
            extra[name] = value
        elif isinstance(value, shape):  # an invalid value must not hide the run
            known[name] = value
    if not all(isinstance(word, str) for word in known.get("command", ())):
        del known["command"]
    known["tags"] = {key: str(value) for key, value in known.get("tags", {}).items()}
    listed = known.get("segments")
    known["segments"] = [
        _segment(one)
        for one in (listed if isinstance(listed, list) else [])
        if isinstance(one, dict)
    ]
    known["extra"] = extra
    return Manifest(**known)


def _segment(members: dict[str, Any]) -> SegmentSummary:
    return SegmentSummary(
        name=str(members.get("name", "")),
        events=_int(members.get("events")),
        bytes=_int(members.get("bytes")),
        crc=str(members.get("crc", "")),
    )


def _int(value: Any) -> int:
    return value if isinstance(value, int) else 0


_SHAPES: dict[str, tuple[type, ...]] = {
    "run": (str,),
    "format": (int,),
    "name": (str,),
    "status": (str,),
    "started_at": (str,),
    "started_ns": (int,),
    "ended_at": (str, type(None)),
    "duration_s": (int, float, type(None)),
    "level": (str,),
    "redacted": (bool,),
    "command": (list,),
    "cwd": (str,),
    "project": (str,),
    "git_commit": (str, type(None)),
    "tags": (dict,),
    "host": (str,),
    "pid": (int,),
    "birth": (str,),
    "python": (str,),
    "playhead": (str,),
    "generation": (int,),
    "exit_code": (int, type(None)),
    "error": (dict, type(None)),
    "events": (int,),
    "lost": (int,),
    "segments": (list,),
    "keep": (bool,),
    "replay_of": (str, type(None)),
    "extra": (dict,),
}


def verdict_of(manifest: Manifest) -> str | None:
    """Return the verdict of a replay; None: the run is not a replay, or it was not judged."""
    verdict = manifest.extra.get(VERDICT)
    is_replay = manifest.replay_of is not None or "forked_from" in manifest.extra
    return verdict if is_replay and isinstance(verdict, str) else None


def status_of(manifest: Manifest) -> Status:
    """Return the status of a run. `running` in the manifest is valid only while the process lives.

    The process of a run on another host cannot be checked, so its manifest is believed.
    """
    if manifest.status != "running" or manifest.host != clock.host():
        return manifest.status
    birth = clock.process_birth(manifest.pid)
    alive = birth is not None and manifest.birth in ("", birth)
    return "running" if alive else "interrupted"

"""Name, tags, note and keep flag of a run, changed after it was recorded. Knows one JSON file."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from playhead.host.private_files import read_regular, replace_file
from playhead.tape.store import announce

FILE = "marks.json"
_LARGEST = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotations:
    """The annotations of a run. None: not annotated. A tag that is None was removed."""

    name: str | None = None
    tags: Mapping[str, str | None] = field(default_factory=dict)
    note: str | None = None
    keep: bool | None = None
    # From a program that joined the run; see `playhead.record(details=…)`.
    details: Mapping[str, Any] = field(default_factory=dict)


NONE = Annotations()


def read_annotations(run: Path) -> Annotations:
    """Read the annotations; empty if the file is missing or invalid: they are only remarks about a run."""
    try:
        members = json.loads(read_regular(f"{run}/{FILE}", _LARGEST))
    except (OSError, ValueError, RecursionError):
        return NONE
    return annotations_of(members)


def annotations_of(members: Any) -> Annotations:
    """Return the annotations in the decoded file; invalid members are left out."""
    if not isinstance(members, dict):
        return NONE
    name, tags = members.get("name"), members.get("tags")
    note, keep = members.get("note"), members.get("keep")
    details = members.get("details")
    return Annotations(
        name=name if isinstance(name, str) else None,
        tags={
            key: value
            for key, value in (tags.items() if isinstance(tags, dict) else ())
            if value is None or isinstance(value, str)
        },
        note=note if isinstance(note, str) else None,
        keep=keep if isinstance(keep, bool) else None,
        details=details if isinstance(details, dict) else {},
    )


def annotate(run: Path, **said: Any) -> Annotations:
    """Annotate a run: `annotate(run, keep=True)`, `annotate(run, tags={"env": "ci"})`. Earlier annotations stay;
    tags are added to the existing ones, and None removes a tag.
    """
    with _alone(run):
        before = read_annotations(run)
        if "tags" in said:
            said["tags"] = {**before.tags, **said["tags"]}
        if "details" in said:
            said["details"] = {**before.details, **said["details"]}
        after = replace(before, **said)
        _write(run, after)
    announce(run)
    return after


@contextmanager
def _alone(run: Path) -> Iterator[None]:
    """Lock the file, so that two concurrent changes are both kept."""
    fd = os.open(run, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _write(run: Path, marks: Annotations) -> None:
    raw = json.dumps(asdict(marks), ensure_ascii=False, indent=1).encode(
        "utf-8", "backslashreplace"
    )
    replace_file(run / FILE, raw + b"\n")

"""The commit marker of a run in a shared store: `runs/RUN/commit.json`. Knows one JSON file.

A run is visible when its marker exists; the marker is written last, and names every object that the run needs.

    runs/RUN/commit.json      the marker
    runs/RUN/marks.json       tags, note, name and keep flag: the only object that is ever replaced
    blobs/ab/abcd…            files of runs and contents of workspaces, named by their SHA-256, stored once
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from playhead.errors import TapeDamaged, TapeTooNew
from playhead.host.later import pattern
from playhead.tape.store import checked_id

VERSION = 1
LARGEST = 64 * 1024 * 1024
MARKS_LARGEST = 1024 * 1024
_SHA = pattern(r"[0-9a-f]{64}")
# A path below the folder of a run. It comes from other people, so it must not lead anywhere else.
_PATH = pattern(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,200}(/[A-Za-z0-9_][A-Za-z0-9._-]{0,200}){0,4}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """A file of a run. For packs and contents of workspaces `path` is a name in the store's pool."""

    path: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The marker of one run: the objects that it needs, and its manifest."""

    run: str
    files: tuple[RemoteFile, ...]
    packs: tuple[RemoteFile, ...] = ()
    contents: tuple[RemoteFile, ...] = ()
    # The manifest, so that a list of runs needs no further object.
    manifest: Mapping[str, Any] = field(default_factory=dict)
    pushed_at: str = ""
    pushed_by: str = ""

    @property
    def objects(self) -> tuple[RemoteFile, ...]:
        return (*self.files, *self.packs, *self.contents)

    @property
    def size(self) -> int:
        return sum(one.size for one in self.objects)


def commit_path(run: str) -> str:
    return f"runs/{checked_id(run)}/commit.json"


def marks_path(run: str) -> str:
    return f"runs/{checked_id(run)}/marks.json"


def blob_key(sha256: str) -> str:
    return f"blobs/{sha256[:2]}/{sha256}"


def encode_commit(commit: Commit) -> bytes:
    members = {"version": VERSION, **asdict(commit)}
    return json.dumps(members, ensure_ascii=False, indent=1, sort_keys=True).encode(
        "utf-8", "backslashreplace"
    )


def decode_commit(raw: bytes, run: str, place: str) -> Commit:
    """Decode a marker. TapeDamaged: it is not a marker of this run. TapeTooNew: a newer Playhead wrote it."""
    try:
        members = json.loads(raw)
        version = int(members["version"])
        if version > VERSION:
            raise TapeTooNew(found=version, known=VERSION)
        found = Commit(
            run=str(members["run"]),
            files=tuple(_file(one) for one in members["files"]),
            packs=tuple(_file(one) for one in members["packs"]),
            contents=tuple(_file(one) for one in members["contents"]),
            manifest=dict(members["manifest"]),
            pushed_at=str(members["pushed_at"]),
            pushed_by=str(members["pushed_by"]),
        )
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise TapeDamaged(
            f"{place}/{commit_path(run)} is not a marker of a run ({error})."
        ) from None
    if found.run != run:
        raise TapeDamaged(f"{place}/{commit_path(run)} is the marker of run {found.run[:80]}.")
    return found


def _file(members: Mapping[str, Any]) -> RemoteFile:
    one = RemoteFile(
        path=str(members["path"]), sha256=str(members["sha256"]), size=int(members["size"])
    )
    if not _SHA.fullmatch(one.sha256) or not _PATH.fullmatch(one.path) or one.size < 0:
        raise ValueError(f"it names the file {one.path[:80]!r}")
    return one

"""The runs of a shared store: list them, delete them, and delete objects that no run needs. Not commands.

Commit markers are kept in the local store, by the tag of their object, so that a list fetches only new ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playhead import clock
from playhead.errors import PlayheadError, UsageError
from playhead.host.private_files import read_regular, replace_file
from playhead.remote.commit import (
    LARGEST,
    MARKS_LARGEST,
    Commit,
    blob_key,
    commit_path,
    decode_commit,
    marks_path,
)
from playhead.remote.job_verdicts import FOLDER as REPORTS
from playhead.remote.objects import ObjectFacts, ObjectFolder
from playhead.remote.upload_state import remote_folder
from playhead.tape.annotations import NONE, annotations_of
from playhead.tape.manifest import Manifest, from_members, marked
from playhead.tape.store import checked_id

_AT_ONCE = 16
# Unneeded objects younger than this stay: they may belong to a push in progress.
GRACE_NS = 24 * 3600 * 10**9
# Verdicts of batches that are too old to be resumed.
_REPORTS_NS = 30 * GRACE_NS
_CLOCK = "clock"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteRun:
    """A visible run of a shared store, with its tags, note and keep flag."""

    commit: Commit
    manifest: Manifest

    @property
    def id(self) -> str:
        return self.commit.run


def remote_json(one: RemoteRun, url: str, *, is_here: bool) -> dict[str, object]:
    """One run, for `--json` and the HTTP API."""
    manifest = one.manifest
    return {
        "id": one.id,
        "name": manifest.name,
        "status": manifest.status,
        "started_at": manifest.started_at,
        "duration_s": manifest.duration_s,
        "tags": manifest.tags,
        "keep": manifest.keep,
        "project": manifest.project,
        "command": manifest.command,
        "replay_of": manifest.replay_of,
        "bytes": one.commit.size,
        "pushed_at": one.commit.pushed_at,
        "pushed_by": one.commit.pushed_by,
        "remote": url,
        "here": is_here,
    }


def remote_runs(remote: ObjectFolder, home: Path) -> tuple[list[RemoteRun], list[str]]:
    """Return the runs, newest first, and a sentence for each run that cannot be read."""
    objects = {one.path: one for one in remote.list("runs")}
    folder = remote_folder(home, remote.url) / "markers"
    folder.mkdir(mode=0o700, exist_ok=True)
    ids = [_run_of(path) for path in objects if path.endswith("/commit.json")]
    problems: list[str] = []

    def read(run: str) -> RemoteRun | None:
        try:
            raw = _cached(remote, folder, objects[commit_path(run)], LARGEST)
            commit = decode_commit(raw, run, remote.url)
            marks = objects.get(marks_path(run))
            said = NONE
            if marks is not None:
                said = annotations_of(_json(_cached(remote, folder, marks, MARKS_LARGEST)))
            manifest = from_members(commit.manifest, Path(run))
            return RemoteRun(commit=commit, manifest=marked(manifest, said))
        except (PlayheadError, FileNotFoundError) as error:
            problems.append(f"{run}: {error}")
            return None

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = [one for one in pool.map(read, filter(None, ids)) if one is not None]
    return sorted(found, key=lambda one: one.id, reverse=True), sorted(problems)


def remote_ids(remote: ObjectFolder) -> list[str]:
    """Return the ids of all visible runs, newest first, from one listing."""
    paths = (one.path for one in remote.list("runs") if one.path.endswith("/commit.json"))
    return sorted(filter(None, map(_run_of, paths)), reverse=True)


def _run_of(path: str) -> str | None:
    """Return the run of a path. None: it is not the path of a run. A shared store may have objects of other
    programs.
    """
    parts = path.split("/")
    try:
        return checked_id(parts[1]) if len(parts) == 3 else None
    except UsageError:
        return None


def _cached(remote: ObjectFolder, folder: Path, facts: ObjectFacts, largest: int) -> bytes:
    _, run, name = facts.path.split("/")
    path = folder / f"{run}.{name}"
    tag = json.dumps([facts.e_tag, facts.size, facts.modified_ns]).encode()
    try:
        head, _, raw = read_regular(path, largest + 1024).partition(b"\n")
        if head == tag:
            return raw
    except OSError:
        pass  # not fetched yet
    found = remote.get(facts.path, largest)
    if found is None:
        raise FileNotFoundError(f"{facts.path} was deleted meanwhile")
    replace_file(path, tag + b"\n" + found)
    return found


def _json(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def delete_runs(remote: ObjectFolder, runs: Iterable[str]) -> None:
    """Make runs invisible by deleting their markers. `sweep` deletes their objects."""
    for run in runs:
        remote.delete([commit_path(run)])
        remote.delete([marks_path(run)])


def sweep(remote: ObjectFolder, home: Path, grace_ns: int = GRACE_NS) -> tuple[int, int]:
    """Delete objects that no visible run needs, including those of interrupted uploads. Return their number and
    bytes.

    Nothing is deleted if a marker cannot be read: its run may need anything.
    """
    now = _server_time(remote)
    old = [one.path for one in remote.list(REPORTS) if now - one.modified_ns > _REPORTS_NS]
    remote.delete(old)
    found = [one for one in remote.list("blobs") if now - one.modified_ns > grace_ns]
    for _ in range(2):  # a second time, for runs that became visible meanwhile
        runs, problems = remote_runs(remote, home)
        if problems or not found:
            return 0, 0
        needed = {blob_key(file.sha256) for one in runs for file in one.commit.objects}
        found = [one for one in found if one.path not in needed]
    gone = [one for one in found if _is_unchanged(remote, one)]
    remote.delete([one.path for one in gone])
    return len(gone), sum(one.size for one in gone)


def _is_unchanged(remote: ObjectFolder, one: ObjectFacts) -> bool:
    """Return whether an object is unchanged: a push that reuses an old object writes it again."""
    now = remote.facts(one.path)
    return now is not None and now.modified_ns == one.modified_ns


def _server_time(remote: ObjectFolder) -> int:
    """Return the time of the server's clock, which dates the objects: the clock of this machine may be wrong."""
    remote.put(_CLOCK, b"")
    facts = remote.facts(_CLOCK)
    return clock.wall_ns() if facts is None else facts.modified_ns


def find_remote_run(remote: ObjectFolder, asked: str) -> Sequence[str]:
    """Return the visible runs with this id, or with ids that start with it."""
    try:
        prefix = checked_id(asked)
    except UsageError:
        return []
    if remote.facts(commit_path(prefix)) is not None:
        return [prefix]
    return [one for one in remote_ids(remote) if one.startswith(prefix)]

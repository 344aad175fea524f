"""Pull a run from a shared store into a local one. Knows the commit marker and the files of a run; not commands.

Everything that arrives comes from another person: names are checked, hashes compared, sizes limited, and the run is
marked as pulled, so that its command does not run without consent. The run's folder appears when it is complete.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from playhead.errors import RunNotFound, StoreError, TapeDamaged
from playhead.host.private_files import create_part, read_regular, replace_file, sha256_of
from playhead.remote.commit import (
    LARGEST,
    MARKS_LARGEST,
    Commit,
    RemoteFile,
    blob_key,
    commit_path,
    decode_commit,
    marks_path,
)
from playhead.remote.objects import ObjectFolder
from playhead.remote.pushing import LOCAL_MEMBERS
from playhead.remote.upload_state import RunUpload, note_upload
from playhead.tape.annotations import FILE as MARKS
from playhead.tape.annotations import decode_annotations, join_annotations
from playhead.tape.manifest import FILE as MANIFEST
from playhead.tape.reading.partial_run import is_partial, map_of, mark_of
from playhead.tape.store import announce, open_store, run_path
from playhead.workspace.blobs.packs import read_records
from playhead.workspace.blobs.pool import Pool

_AT_ONCE = 8
# Space that a pull leaves free on the disk.
_SPARE = 256 * 1024 * 1024


def pull(
    run_id: str, remote: ObjectFolder, home: Path, tell: Callable[[int, int], None] | None = None
) -> Path:
    """Fetch a run into that store. Return its folder. Of a run that exists already, only new marks are fetched.

    RunNotFound: the shared store has no such run. TapeDamaged: an object is missing or was altered.
    """
    target = run_path(open_store(home), run_id)
    if _is_whole(target):
        join_marks(target, remote)
        return target
    commit = commit_of(run_id, remote)
    _check_room(home, commit)
    with staged(home, run_id) as stage:
        if _is_whole(target):  # another process was faster
            return target
        wanted = [
            *((one, stage / "run" / one.path) for one in commit.files),
            *content_places(stage, home, commit),
        ]
        fetch_files(remote, wanted, tell)
        _remove_others(stage, {place for _, place in wanted})
        add_packs(stage, home)
        finish_run(stage / "run", run_id, remote)
        if target.is_dir():  # a part of the run: readers that have it open keep their files
            target.rename(stage / "part")
        # A process that was killed may have left a mark without a run.
        mark_of(target).unlink(missing_ok=True)
        map_of(target).unlink(missing_ok=True)
        (stage / "run").rename(target)
    note_upload(home, run_id, RunUpload(state="pushed", remote=remote.url))
    announce(target)
    return target


def _is_whole(run: Path) -> bool:
    return run.is_dir() and not is_partial(run)


def commit_of(run_id: str, remote: ObjectFolder) -> Commit:
    """Return the marker of a run. RunNotFound: the shared store has no such run."""
    raw = remote.get(commit_path(run_id), LARGEST)
    if raw is None:
        raise RunNotFound(
            f"{remote.url} has no run {run_id!r}. `playhead list --remote` lists its runs.",
            asked=run_id,
        )
    commit = decode_commit(raw, run_id, remote.url)
    if not any(one.path == MANIFEST for one in commit.files):
        raise TapeDamaged(f"{remote.url}: run {run_id} has no {MANIFEST}.")
    return commit


def content_places(stage: Path, home: Path, commit: Commit) -> list[tuple[RemoteFile, Path]]:
    """Return the objects of the run's workspace, and where they are stored."""
    return [
        *((one, _pack_place(stage, one)) for one in commit.packs),
        *((one, _content_place(home, one)) for one in commit.contents),
    ]


def finish_run(run: Path, run_id: str, remote: ObjectFolder) -> None:
    """Mark a fetched run as another person's, and add its tags and notes."""
    _mark_as_pulled(run, remote.url)
    _pull_marks(run, run_id, remote)


@contextmanager
def staged(home: Path, run_id: str) -> Iterator[Path]:
    """Lock a folder beside the runs. Files of an interrupted pull in it are used again."""
    stage = home / f".pull-{run_id}"
    stage.mkdir(mode=0o700, exist_ok=True)
    fd = os.open(stage, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        # The process that held the lock may have removed the folder.
        stage.mkdir(mode=0o700, exist_ok=True)
        yield stage
        shutil.rmtree(stage, ignore_errors=True)
    finally:
        os.close(fd)


def _check_room(home: Path, commit: Commit) -> None:
    free = shutil.disk_usage(home).free
    if commit.size + _SPARE > free:
        raise StoreError(
            f"Run {commit.run} has {commit.size / 1e9:.1f} GB, and {home} has {free / 1e9:.1f} GB free."
        )


def _pack_place(home: Path, one: RemoteFile) -> Path:
    return home / "blobs" / "packs" / f"pulled-{one.sha256[:32]}.pack"


def _content_place(home: Path, one: RemoteFile) -> Path:
    if one.path != one.sha256:
        raise TapeDamaged(f"A content is named {one.path[:80]!r}; expected its SHA-256.")
    return home / "blobs" / one.sha256[:2] / one.sha256


def add_packs(stage: Path, home: Path) -> None:
    """Move packs into the store. Each content is read first: a false name would hide content of the user."""
    pool = Pool(stage)
    found = sorted((stage / "blobs" / "packs").glob("*.pack"))
    for path in found:
        for record in read_records(str(path)):
            pool.read(record.digest.hex())
    (home / "blobs" / "packs").mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in found:
        path.rename(home / "blobs" / "packs" / path.name)


def fetch_files(
    remote: ObjectFolder,
    wanted: list[tuple[RemoteFile, Path]],
    tell: Callable[[int, int], None] | None = None,
) -> None:
    """Fetch these objects to these places, several at once. TapeDamaged: one is missing or was altered."""
    total = sum(one.size for one, _ in wanted)
    for folder in sorted({place.parent for _, place in wanted}):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    done = 0
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for size in pool.map(lambda pair: _fetch(remote, *pair), wanted):
            done += size
            if tell is not None:
                tell(done, total)


def _fetch(remote: ObjectFolder, one: RemoteFile, place: Path) -> int:
    if _is_there(place, one):
        return one.size
    fd, part = create_part(place)
    try:
        with open(fd, "wb") as file:
            _download(remote, one, file)
        os.replace(part, place)
    except BaseException as error:
        Path(part).unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise StoreError(f"{place} cannot be written ({error.strerror or error}).") from error
    return one.size


def _download(remote: ObjectFolder, one: RemoteFile, file: BinaryIO) -> None:
    """Download an object. TapeDamaged: it is missing, or its content does not match its name."""
    digest, size = hashlib.sha256(), 0
    blocks = remote.stream(blob_key(one.sha256))
    while True:
        try:
            block = next(blocks, b"")
        except FileNotFoundError:
            raise TapeDamaged(
                f"{remote.url}/{blob_key(one.sha256)} ({one.path}) is missing. Push the run again with --force from "
                "a machine that has it."
            ) from None
        size += len(block)
        if not block or size > one.size:
            break
        digest.update(block)
        file.write(block)
    if size != one.size or digest.hexdigest() != one.sha256:
        raise TapeDamaged(
            f"{remote.url}/{blob_key(one.sha256)} was altered: its content does not match its name."
        )


def _is_there(place: Path, one: RemoteFile) -> bool:
    try:
        return place.stat().st_size == one.size and sha256_of(place) == (one.sha256, one.size)
    except OSError:
        return False


def _remove_others(stage: Path, wanted: set[Path]) -> None:
    """Delete the unfinished files of a pull that was killed."""
    for path in stage.rglob("*"):
        if not path.is_dir() and path not in wanted:
            path.unlink()


def _mark_as_pulled(run: Path, url: str) -> None:
    try:
        members = json.loads(read_regular(run / MANIFEST, LARGEST))
        members = {name: one for name, one in members.items() if name not in LOCAL_MEMBERS}
    except (AttributeError, OSError, ValueError, RecursionError) as error:
        raise TapeDamaged(
            f"The manifest of {run.name} in {url} cannot be read ({error})."
        ) from None
    raw = json.dumps({**members, "pulled_from": url}, ensure_ascii=False, indent=1)
    replace_file(run / MANIFEST, raw.encode("utf-8", "backslashreplace") + b"\n")


def join_marks(run: Path, remote: ObjectFolder) -> None:
    """Add the tags, notes and comments that people have pushed since this copy of the run was fetched."""
    marks = remote.get(marks_path(run.name), MARKS_LARGEST)
    if marks is not None:
        join_annotations(run, decode_annotations(marks))


def _pull_marks(run: Path, run_id: str, remote: ObjectFolder) -> None:
    marks = remote.get(marks_path(run_id), MARKS_LARGEST)
    if marks is not None:
        replace_file(run / MARKS, marks)

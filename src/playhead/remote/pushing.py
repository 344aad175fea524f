"""Push a run into a shared store. Knows the files of a run and the order of uploads; not commands.

Objects are named by their content, so an interrupted push continues: objects that arrived are not sent again. The
commit marker is written last, only if there is none; so a run is visible when it is complete, and of two writers one
wins.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from playhead import clock
from playhead.errors import RemoteError, StoreError, UsageError
from playhead.host.private_files import file_of, read_regular, sha256_of
from playhead.host.user_name import user_name
from playhead.remote.commit import (
    LARGEST,
    MARKS_LARGEST,
    Commit,
    RemoteFile,
    blob_key,
    commit_path,
    decode_commit,
    encode_commit,
    marks_path,
)
from playhead.remote.objects import ObjectFolder
from playhead.remote.upload_state import (
    RunUpload,
    forget_packs,
    known_packs,
    note_pack,
    note_upload,
)
from playhead.tape.annotations import FILE as MARKS
from playhead.tape.annotations import Annotations, decode_annotations, join_annotations
from playhead.tape.manifest import FILE as MANIFEST
from playhead.tape.manifest import read_manifest, status_of
from playhead.tape.reader import Tape
from playhead.workspace.blob_collection import contents_of, copy_records
from playhead.workspace.blobs.pool import Pool, is_digest
from playhead.workspace.history import read_history

# Members of a manifest that are valid only on this machine.
LOCAL_MEMBERS = ("origin", "pulled", "pulled_from")
_AT_ONCE = 8
_MARKS_TRIES = 4
_BLOCK = 1 << 20
# An existing object that is older than this is sent again: a prune that runs now may delete it as unneeded.
_FRESH_NS = 3600 * 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """A finished push. `sent`: bytes that the shared store did not have before; `is_new`: the run was not there."""

    run: str
    size: int
    sent: int
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Local:
    """A file to push: from the disk, or from memory."""

    file: RemoteFile
    # None: the shared store has it, and this machine does not need it.
    source: Path | bytes | None


def push(
    run: Path,
    remote: ObjectFolder,
    *,
    force: bool = False,
    tell: Callable[[int, int], None] | None = None,
    may_retry: bool = True,
) -> Pushed:
    """Push the run in that folder of a store. `force`: replace another run of the same id.

    UsageError: the run is in progress, or the shared store has another run of this id. RemoteError: see ObjectFolder.
    """
    if run.parent.name != "runs":
        raise UsageError(f"{run} is not in a store. Push runs by id.")
    home, manifest = run.parent.parent, read_manifest(run)
    if status_of(manifest) == "running":
        raise UsageError(f"{run.name} is still running. Push it when it has ended.")
    before = _look(run)
    there = _earlier(remote, run.name)
    uploads = _Uploads(remote, tell, sum(size for _, size, _ in before.values()))
    # A new run is sent while the rest of it is still being hashed.
    files = _files(run, before, uploads.send if there is None else None)
    is_same = there is not None and set(there.files) == {one.file for one in files}
    if there is not None and is_same and _is_complete(there, remote):
        push_marks(run, remote, force=force)
        note_upload(home, run.name, RunUpload(state="pushed", remote=remote.url))
        return Pushed(run=run.name, size=there.size, sent=0, is_new=False)
    if there is not None and not is_same and not force:
        raise UsageError(
            f"{remote.url} has another run {run.name}: it was pushed at {there.pushed_at} by {there.pushed_by}, with "
            "other contents. `push --force` replaces it."
        )
    with tempfile.TemporaryDirectory(prefix="playhead-push-") as scratch:
        packs, contents = _contents(run, home, remote, Path(scratch))
        uploads.total += sum(one.file.size for one in (*packs, *contents))
        mine = [*files, *packs, *contents]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(uploads.send, mine))
        if _look(run) != before:
            raise StoreError(f"{run.name} was changed while it was pushed. Push it again.")
    push_marks(run, remote, force=force)
    # The same run with missing objects: this machine may have packed its files in another way.
    _commit(remote, _marker(run, files, packs, contents), replace=force or is_same)
    # A prune may have deleted objects that no run needed before this one.
    if any(remote.facts(blob_key(one.file.sha256)) is None for one in uploads.reused):
        if not may_retry:
            raise RemoteError(
                f"{remote.url}: another process deletes objects of {run.name} while it is pushed."
            )
        forget_packs(home, remote.url)
        return push(run, remote, force=True, tell=tell, may_retry=False)
    note_upload(home, run.name, RunUpload(state="pushed", remote=remote.url))
    size = sum(one.file.size for one in mine)
    return Pushed(run=run.name, size=size, sent=uploads.sent, is_new=there is None)


def _marker(
    run: Path, files: Iterable[_Local], packs: Iterable[_Local], contents: Iterable[_Local]
) -> Commit:
    return Commit(
        run=run.name,
        files=tuple(one.file for one in files),
        packs=tuple(one.file for one in packs),
        contents=tuple(one.file for one in contents),
        manifest=json.loads(_shared_manifest(run / MANIFEST)),
        pushed_at=clock.iso(clock.wall_ns()),
        pushed_by=f"{user_name()}@{clock.host()}",
    )


def _earlier(remote: ObjectFolder, run: str) -> Commit | None:
    raw = remote.get(commit_path(run), LARGEST)
    return None if raw is None else decode_commit(raw, run, remote.url)


def _is_complete(commit: Commit, remote: ObjectFolder) -> bool:
    """Return whether the shared store has every object of the run: a push of the same run then has nothing to send."""

    def is_there(one: RemoteFile) -> bool:
        found = remote.facts(blob_key(one.sha256))
        return found is not None and found.size == one.size

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return all(pool.map(is_there, commit.objects))


def _commit(remote: ObjectFolder, commit: Commit, *, replace: bool) -> None:
    path, raw = commit_path(commit.run), encode_commit(commit)
    if replace:
        remote.put(path, raw)
    else:
        remote.create(path, raw)
    # Read it back: another writer may have been faster, and some servers ignore create-if-absent.
    there = _earlier(remote, commit.run)
    if there is None or set(there.files) != set(commit.files):
        raise RemoteError(
            f"Another machine pushed a run {commit.run} to {remote.url} at the same time, with other contents. "
            "The other run was stored; this one was not."
        )


def _look(run: Path) -> dict[str, tuple[int, int, int]]:
    """Return the names and states of the regular files, without the marks. Links are not followed: the run may be
    another user's.
    """
    found = {}
    for folder, _, names in os.walk(run):
        for name in names:
            path = Path(folder, name)
            if path.is_symlink() or not path.is_file() or name.endswith(".part"):
                continue
            state = path.stat()
            found[str(path.relative_to(run))] = (state.st_ino, state.st_size, state.st_mtime_ns)
    found.pop(MARKS, None)
    return found


def _files(
    run: Path, names: Iterable[str], then: Callable[[_Local], None] | None = None
) -> list[_Local]:
    """Return the files of a run with their hashes. `then` gets each of them as soon as it is hashed."""

    def hashed(name: str) -> _Local:
        path = run / name
        source: Path | bytes = _shared_manifest(path) if name == MANIFEST else path
        sha256, size = _hash(source)
        found = _Local(file=RemoteFile(path=name, sha256=sha256, size=size), source=source)
        if then is not None:
            then(found)
        return found

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(hashed, sorted(names)))


def _shared_manifest(path: Path) -> bytes:
    members = json.loads(read_regular(path, LARGEST))
    for name in LOCAL_MEMBERS:
        members.pop(name, None)
    # It is not running any more, and another machine could not find that out.
    if members.get("status") == "running":
        members["status"] = "interrupted"
    return json.dumps(members, ensure_ascii=False, indent=1).encode("utf-8", "backslashreplace")


def _hash(source: Path | bytes) -> tuple[str, int]:
    if isinstance(source, bytes):
        return hashlib.sha256(source).hexdigest(), len(source)
    return sha256_of(source)


def _contents(
    run: Path, home: Path, remote: ObjectFolder, scratch: Path
) -> tuple[list[_Local], list[_Local]]:
    """Return packs and single contents of the run's workspace: packs of earlier pushes, and one with the rest."""
    needed = contents_of(read_history(Tape(run), home))
    pool = Pool(home)
    places = {name: Path(pool.loose(name)) for name in needed if is_digest(name)}
    loose = {name for name, path in places.items() if path.is_file() and not path.is_symlink()}
    rest, packs = needed - loose, []
    have: set[str] = set()
    for sha256, facts in known_packs(home, remote.url).items():
        digests = set(facts.get("contents", ()))
        # A pack that consists mostly of contents of other runs would make this run large to pull.
        if len(digests & rest) * 2 < len(digests) or not digests:
            continue
        there = remote.facts(blob_key(sha256))
        if there is not None:
            have |= digests
            file = RemoteFile(path=sha256, sha256=sha256, size=there.size)
            packs.append(_Local(file=file, source=None))
    part = scratch / "new.pack"
    copied = copy_records(home, rest - have, part, without=have)
    if copied:
        sha256, size = _hash(part)
        packs.append(_Local(file=RemoteFile(path=sha256, sha256=sha256, size=size), source=part))
        facts = {"size": size, "contents": sorted(copied)}
        note_pack(home, remote.url, sha256, facts)
    singles = []
    for name in sorted(loose):
        sha256, size = _hash(places[name])
        file = RemoteFile(path=name, sha256=sha256, size=size)
        singles.append(_Local(file=file, source=places[name]))
    return packs, singles


class _Uploads:
    """Sends the objects that the shared store lacks, each once. `reused`: the objects that existed already."""

    def __init__(
        self, remote: ObjectFolder, tell: Callable[[int, int], None] | None, total: int
    ) -> None:
        self.total = total
        self.sent = 0
        self.reused: list[_Local] = []
        self._remote = remote
        self._tell = tell
        self._done = 0
        self._seen: set[str] = set()
        self._lock = Lock()
        self._now_ns = clock.wall_ns()

    def send(self, one: _Local) -> None:
        with self._lock:
            if one.file.sha256 in self._seen:
                return
            self._seen.add(one.file.sha256)
        there = self._remote.facts(blob_key(one.file.sha256))
        is_whole = there is not None and there.size == one.file.size
        is_fresh = there is not None and abs(self._now_ns - there.modified_ns) < _FRESH_NS
        is_sent = one.source is not None and not (is_whole and is_fresh)
        if is_sent:
            _put(self._remote, one)
        with self._lock:
            self._done += one.file.size
            if is_sent:
                self.sent += one.file.size
            else:
                self.reused.append(one)
            if self._tell is not None:
                self._tell(self._done, self.total)


def _put(remote: ObjectFolder, one: _Local) -> None:
    key = blob_key(one.file.sha256)
    if isinstance(one.source, bytes):
        remote.put(key, one.source)
    elif one.source is not None:
        with file_of(one.source) as file:
            remote.put_file(key, file)


def push_marks(run: Path, remote: ObjectFolder, *, force: bool = False) -> None:
    """Tags, notes and the keep flag may change after a push: what was set last wins, on both sides. Comments of both
    sides are kept. `force`: this run replaces another one, so only comments are taken from there.
    """
    for _ in range(_MARKS_TRIES):
        raw = remote.get(marks_path(run.name), MARKS_LARGEST)
        there = None if raw is None else decode_annotations(raw)
        if there is not None:
            join_annotations(run, Annotations(comments=there.comments) if force else there)
        try:
            mine = read_regular(run / MARKS, MARKS_LARGEST)
        except OSError:
            return  # none on either side
        if decode_annotations(mine) == there:
            return
        # Then read it again: another person may have pushed at the same time.
        remote.put(marks_path(run.name), mine)

"""Open a run of a shared store without fetching all of it: the index first, then ranges as they are read. Not commands.

The small files of the run are fetched into the cache at once; see `tape.reading.partial_run` for the rest. A range
cannot be compared with the SHA-256 of its object: the checksums of zstd frames and of lines detect altered bytes.
Payloads and contents of workspaces are fetched as a whole and compared with their names. `pulling.pull` makes the
run whole.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from playhead.errors import StoreError, TapeDamaged
from playhead.host.private_files import read_regular, replace_file
from playhead.remote.commit import (
    LARGEST,
    Commit,
    RemoteFile,
    blob_key,
    decode_commit,
    encode_commit,
)
from playhead.remote.objects import ObjectFolder
from playhead.remote.pulling import (
    add_packs,
    commit_of,
    content_places,
    fetch_files,
    finish_run,
    join_marks,
    staged,
)
from playhead.tape.layout import INDEX_FILE, SEALED_FILE, SEGMENT_PREFIX, SEGMENT_SUFFIX
from playhead.tape.reading.partial_run import map_of, mark_of
from playhead.tape.store import announce, open_store, run_path

# A smaller run is fetched as a whole: one round trip per file, all of them in parallel.
_SMALL = 8 * 1024 * 1024
# If a run has more than this beside the tape and its payloads, a first view cannot fetch it quickly.
_MOST_BESIDE = 6 * 1024 * 1024


def open_partial(run_id: str, remote: ObjectFolder, cache: Path) -> Path | None:
    """Return the folder of a run in the cache, with its small files. None: the run must be fetched as a whole.

    RunNotFound: the shared store has no such run.
    """
    target = run_path(open_store(cache), run_id)
    if target.is_dir():
        join_marks(target, remote)
        return target
    commit = commit_of(run_id, remote)
    files = {one.path: one for one in commit.files}
    beside = [one for one in commit.files if not _is_fetched_later(one)]
    is_sealed = SEALED_FILE in files and INDEX_FILE in files
    has_segments = any(
        one.path.startswith(SEGMENT_PREFIX) and one.path.endswith(SEGMENT_SUFFIX) for one in beside
    )
    if (
        not is_sealed
        or has_segments
        or commit.size < _SMALL
        or sum(one.size for one in beside) > _MOST_BESIDE
    ):
        return None
    with staged(cache, run_id) as stage:
        if target.is_dir():  # another process was faster
            return target
        run = stage / "run"
        # An interrupted pull may have left unfinished files.
        shutil.rmtree(run, ignore_errors=True)
        fetch_files(remote, [(one, run / one.path) for one in beside])
        with open(run / SEALED_FILE, "wb") as file:
            file.truncate(files[SEALED_FILE].size)
        finish_run(run, run_id, remote)
        mark = mark_of(target)
        mark.parent.mkdir(mode=0o700, exist_ok=True)
        map_of(target).unlink(missing_ok=True)
        # The mark is written first: a folder without it would look like a whole run.
        replace_file(mark, _encoded(remote.url, commit))
        run.rename(target)
    announce(target)
    return target


def _is_fetched_later(one: RemoteFile) -> bool:
    return one.path == SEALED_FILE or one.path.startswith("blobs/")


def _encoded(url: str, commit: Commit) -> bytes:
    return json.dumps({"url": url, "commit": json.loads(encode_commit(commit))}).encode()


class RemoteRanges:
    """Fetches the missing parts of one partial run."""

    def __init__(self, run: Path, remote: ObjectFolder, commit: Commit) -> None:
        self._run = run
        self._remote = remote
        self._commit = commit
        self._files: Mapping[str, RemoteFile] = {one.path: one for one in commit.files}
        # Bytes that were fetched, for the user and for tests.
        self.fetched = 0
        self._lock = Lock()
        self._has_contents = False

    def fetch_range(self, name: str, start: int, stop: int) -> bytes:
        one = self._files.get(name)
        if one is None or stop > one.size:
            raise TapeDamaged(
                f"Run {self._run.name} in {self._remote.url} has no such part of {name}."
            )
        try:
            raw = self._remote.get_range(blob_key(one.sha256), start, stop)
        except FileNotFoundError:
            raise TapeDamaged(
                f"{self._remote.url}: {name} of run {self._run.name} is missing. Push the run again with --force "
                "from a machine that has it."
            ) from None
        self.fetched += len(raw)
        return raw

    def fetch_file(self, name: str) -> bool:
        one = self._files.get(name)
        if one is None:
            return False
        fetch_files(self._remote, [(one, self._run / one.path)])
        self.fetched += one.size
        return True

    def fetch_contents(self) -> None:
        with self._lock:
            if self._has_contents:
                return
            cache = self._run.parent.parent
            with staged(cache, self._run.name) as stage:
                fetch_files(self._remote, content_places(stage, cache, self._commit))
                add_packs(stage, cache)
            self.fetched += sum(one.size for one in (*self._commit.packs, *self._commit.contents))
            self._has_contents = True


class Connections:
    """The sources of partial runs, one for each run and process."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ
        self._known: dict[Path, tuple[int, RemoteRanges]] = {}
        self._lock = Lock()

    def connect(self, run: Path) -> RemoteRanges:
        """Return the source of a partial run. StoreError: its mark cannot be read."""
        mark = mark_of(run)
        with self._lock:
            try:
                made = mark.stat().st_mtime_ns
                known = self._known.get(run)
                if known is None or known[0] != made:
                    members: Any = json.loads(read_regular(mark, LARGEST))
                    url = str(members["url"])
                    commit = decode_commit(json.dumps(members["commit"]).encode(), run.name, url)
                    source = RemoteRanges(run, ObjectFolder(url, self._environ), commit)
                    known = self._known[run] = (made, source)
            except (OSError, KeyError, TypeError, ValueError) as error:
                raise StoreError(f"{mark} cannot be read ({error}).") from None
            return known[1]

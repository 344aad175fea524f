"""Runs of a shared store that are only read: kept in a store of their own, up to a limit. Not commands.

The runs that were not used for the longest time go first. A run that was used within the last hour stays, even if the
cache is over its limit: another process may be reading it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from playhead import clock
from playhead.errors import PlayheadError
from playhead.remote.objects import ObjectFolder
from playhead.remote.partial_runs import open_partial
from playhead.remote.pulling import pull
from playhead.remote.upload_state import remote_folder
from playhead.tape.reading.partial_run import map_of, mark_of
from playhead.tape.store import run_path
from playhead.workspace.blob_collection import collect, pool_size

DEFAULT_BYTES = 5_000_000_000
_IN_USE_NS = 3600 * 10**9


def cached_path(run_id: str, remote: ObjectFolder, home: Path) -> Path:
    """The place of a run in the cache, where `fetch` puts it."""
    return run_path(remote_folder(home, remote.url) / "cache", run_id)


def fetch(
    run_id: str,
    remote: ObjectFolder,
    home: Path,
    limit_bytes: int = DEFAULT_BYTES,
    tell: Callable[[int, int], None] | None = None,
) -> Path:
    """Return the folder of a run that is read but not kept. Fetch it if it is not in the cache."""
    cache = remote_folder(home, remote.url) / "cache"
    return _in_use(pull(run_id, remote, cache, tell), cache, limit_bytes)


def open_run(
    run_id: str,
    remote: ObjectFolder,
    home: Path,
    limit_bytes: int = DEFAULT_BYTES,
    tell: Callable[[int, int], None] | None = None,
) -> Path:
    """Return the folder of a run for a first view: a large run is fetched in parts, as they are read."""
    cache = remote_folder(home, remote.url) / "cache"
    run = open_partial(run_id, remote, cache)
    if run is None:
        run = pull(run_id, remote, cache, tell)
    return _in_use(run, cache, limit_bytes)


def _in_use(run: Path, cache: Path, limit_bytes: int) -> Path:
    """Note that the run is read now, and evict older ones if the cache is too large."""
    os.utime(run)
    _evict(cache, limit_bytes)
    return run


def _evict(cache: Path, limit_bytes: int) -> None:
    runs = [one for one in (cache / "runs").iterdir() if one.is_dir()]
    sizes = {run: _size_of(run) for run in runs}
    total = sum(sizes.values()) + pool_size(cache)
    for run in sorted(runs, key=lambda one: one.stat().st_mtime_ns):
        if total <= limit_bytes or clock.wall_ns() - run.stat().st_mtime_ns < _IN_USE_NS:
            return
        gone = cache / f".gone-{run.name}-{clock.pid()}"
        try:
            run.rename(gone)
        except FileNotFoundError:
            continue  # another process was faster
        mark_of(run).unlink(missing_ok=True)
        map_of(run).unlink(missing_ok=True)
        shutil.rmtree(gone, ignore_errors=True)
        total -= sizes[run]
        try:
            total -= collect(cache)
        except (PlayheadError, OSError):
            continue  # the files of its workspace stay until the next cleanup


def _size_of(run: Path) -> int:
    """Return the space on the disk: the tape of a partial run has holes."""
    return sum(path.stat().st_blocks * 512 for path in run.rglob("*") if path.is_file())

"""Runs that only the shared store has: the list of them, and their folders in the cache. Does not know how requests
are read.

A server shows them if it was started with `--remote`. A change of tags, notes or comments is sent to the shared store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.responses import Response

from playhead import clock
from playhead.errors import RemoteError, RunNotFound
from playhead.remote.objects import ObjectFolder
from playhead.remote.pushing import push_marks
from playhead.remote.remote_runs import RemoteRun, remote_json, remote_runs
from playhead.remote.run_cache import DEFAULT_BYTES, open_run
from playhead.tape.store import run_ids
from playhead.views.web.api.api_responses import Problem, json_response
from playhead.views.web.api.listing import parse_moment, tag_of
from playhead.views.web.api.schema_checks import CheckedRequest

if TYPE_CHECKING:
    from playhead.views.web.api.api_app import Desk

T = TypeVar("T")
# After this time the tags and comments of an opened run are read from the shared store again.
_FRESH_NS = 60 * 10**9


class SharedRuns:
    """The shared store of one server. `connect` opens it again after an error: credentials expire and are renewed."""

    def __init__(
        self, url: str, home: Path, connect: Callable[[], ObjectFolder], limit: int = DEFAULT_BYTES
    ) -> None:
        self.url = url
        self._home = home
        self._connect = connect
        self._limit = limit
        self._remote: ObjectFolder | None = None
        self._opened: dict[str, tuple[Path, int]] = {}
        self._lock = Lock()

    def runs(self) -> tuple[list[RemoteRun], list[str]]:
        return self._use(lambda remote: remote_runs(remote, self._home))

    def path(self, run_id: str) -> Path | None:
        """Return the folder of a run in the cache; a large run is fetched in parts. None: there is no such run."""
        known = self._opened.get(run_id)
        is_here = known is not None and known[0].is_dir()
        if known is not None and is_here and clock.mono_ns() - known[1] < _FRESH_NS:
            return known[0]
        try:
            found = self._use(lambda remote: open_run(run_id, remote, self._home, self._limit))
        except RunNotFound:
            return None
        except RemoteError:
            if known is None or not is_here:
                raise
            found = known[0]  # as it was a minute ago
        self._opened[run_id] = (found, clock.mono_ns())
        return found

    def has(self, path: Path) -> bool:
        """Whether this folder is a run of the shared store."""
        known = self._opened.get(path.name)
        return known is not None and known[0] == path

    def send_marks(self, path: Path) -> None:
        """Share changed tags, notes and comments, if the run is one of the shared store."""
        if self.has(path):
            self._use(lambda remote: push_marks(path, remote))

    def check_is_here(self, path: Path, what: str) -> None:
        """409: the run is only in the shared store, and this server does not do that there."""
        if self.has(path):
            raise Problem(
                409,
                f"{path.name} is in the shared store, not in the store of this server: it cannot be {what} here.",
                f"`playhead pull {path.name}` copies it; `playhead prune --remote` deletes runs there.",
            )

    def _use(self, work: Callable[[ObjectFolder], T]) -> T:
        with self._lock:
            remote = self._remote = self._remote or self._connect()
        try:
            return work(remote)
        except RemoteError:
            self._remote = None
            raise


def page(desk: Desk, asked: CheckedRequest) -> Response:
    """Runs of the shared store, newest first. Without a shared store: none."""
    shared = desk.stories.shared
    if shared is None:
        return json_response({"remote": None, "runs": [], "total": 0, "next": None, "problems": []})
    found, problems = shared.runs()
    here = set(run_ids(desk.home))
    now = clock.wall_ns()
    rows = [one for one in found if _is_wanted(one, asked.values, now)]
    first, limit = int(asked.values["cursor"] or 0), asked.values["limit"]
    part = rows[first : first + limit]
    more = str(first + limit) if len(rows) > first + limit else None
    return json_response(
        {
            "remote": shared.url,
            "runs": [remote_json(one, shared.url, is_here=one.id in here) for one in part],
            "total": len(rows),
            "next": more,
            "problems": problems,
        }
    )


def _is_wanted(one: RemoteRun, values: Mapping[str, Any], now: int) -> bool:
    manifest = one.manifest
    tags = manifest.tags
    texts = [one.id, manifest.name, *manifest.command, *(f"{k}={v}" for k, v in tags.items())]
    said = " ".join(texts).casefold()
    since = values["since"] and parse_moment(values["since"], now)
    return (
        all(word in said for word in (values["q"] or "").casefold().split())
        and (not values["status"] or manifest.status in values["status"])
        and all(
            key in tags and value in (None, tags[key]) for key, value in map(tag_of, values["tag"])
        )
        and (not values["name"] or fnmatchcase(manifest.name, values["name"]))
        and (not since or manifest.started_ns >= since)
        and (values["replays"] != "false" or manifest.replay_of is None)
    )

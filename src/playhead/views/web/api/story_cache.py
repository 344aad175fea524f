"""Cache of stories, and responses shared between concurrent equal requests.

Knows when a story is outdated and how many fit into memory. A request never receives a response whose computation
began before the request arrived: it waits for the next computation, together with the other requests that
arrived meanwhile.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from stat import S_ISDIR
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio
import anyio.to_thread

from playhead import clock
from playhead.errors import RunNotFound, UsageError
from playhead.library.catalogue import entry_at
from playhead.library.run_rows import stamp_of, stamp_of_prices
from playhead.story import CallItem, Prices, Story, tell
from playhead.tape.reader import Tape
from playhead.tape.store import checked_id, run_path

if TYPE_CHECKING:
    from playhead.views.web.api.shared_runs import SharedRuns

# Maximum number of events of all cached stories (a story of 100,000 events takes about 200 MB).
_MOST_EVENTS = 300_000
# Building a story keeps one core busy: more threads would not be faster.
_TELLERS = 2
# Beginnings take a tenth of a second and must not wait for whole stories.
_OPENERS = 2
# A running run is rebuilt only after this multiple of its last build time.
_PATIENCE = 3


@dataclass(frozen=True, kw_only=True)
class CachedStory:
    """A story, valid while `stamp` is the state of its tape. `made`: responses derived from it."""

    path: Path
    stamp: str
    story: Story
    began_ns: int
    ended_ns: int
    made: dict[str, Any] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        return self.story.whole

    @cached_property
    def calls(self) -> dict[int, CallItem]:
        return {call.number: call for call in self.story.calls()}

    def is_recent(self, now_ns: int) -> bool:
        took = self.ended_ns - self.began_ns
        return now_ns - self.ended_ns < _PATIENCE * took


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """The present state of a run, found without reading its tape."""

    path: Path
    stamp: str
    goes_on: bool


class StoryCache:
    """The stories of one store. Concurrent requests for a run share one computation."""

    def __init__(
        self,
        home: Path,
        prices: dict[str, Any] | None = None,
        shared: SharedRuns | None = None,
    ) -> None:
        self.home = home
        # Runs that this store does not have; None: the server shows only its own.
        self.shared = shared
        self._prices = Prices(overrides=prices or {})
        self._price_stamp = stamp_of_prices(prices or {})
        self._kept: OrderedDict[str, CachedStory] = OrderedDict()
        # Beginnings of runs whose whole story is being built.
        self._begun: dict[str, CachedStory] = {}
        self._locks: dict[str, anyio.Lock] = {}
        self._tellers = anyio.CapacityLimiter(_TELLERS)
        self._openers = anyio.CapacityLimiter(_OPENERS)

    def path(self, run_id: str) -> Path:
        """Return the folder of exactly this run: no prefix, no path, no symbolic link."""
        with suppress(UsageError, OSError):  # an impossible or unknown name
            path = run_path(self.home, run_id)
            if S_ISDIR(path.lstat().st_mode):
                return path
        with suppress(UsageError):
            found = None if self.shared is None else self.shared.path(checked_id(run_id))
            if found is not None:
                return found
        raise RunNotFound(f"There is no run {run_id[:128]!r} in this store.", asked=run_id)

    def path_here(self, run_id: str, what: str) -> Path:
        """Like `path`, for what is done only to runs of this store. 409: the run is in the shared store."""
        path = self.path(run_id)
        if self.shared is not None:
            self.shared.check_is_here(path, what)
        return path

    def send_marks(self, path: Path) -> None:
        """Share changed tags, notes and comments of a run that is in the shared store."""
        if self.shared is not None:
            self.shared.send_marks(path)

    def stamp(self, path: Path) -> str:
        return stamp_of(path, self._price_stamp)

    def _look(self, run_id: str) -> Now:
        path = self.path(run_id)
        stamp = self.stamp(path)
        return Now(path=path, stamp=stamp, goes_on=entry_at(path).status == "running")

    async def story(self, run_id: str) -> CachedStory:
        asked_ns = clock.mono_ns()
        now = await anyio.to_thread.run_sync(self._look, run_id)
        known = self._known(run_id, now, asked_ns)
        if known is not None:
            return known
        lock = self._locks.setdefault(run_id, anyio.Lock())
        async with lock:
            known = self._known(run_id, now, asked_ns)
            if known is None:
                known = await anyio.to_thread.run_sync(self._tell, now.path, limiter=self._tellers)
                self._keep(run_id, known)
                self._begun.pop(run_id, None)
        if not lock.statistics().tasks_waiting:
            self._locks.pop(run_id, None)
        return known

    async def begun(self, run_id: str, first: int) -> CachedStory:
        """Return the story if it is cached or has at most `first` events; else the story of the first events."""
        asked_ns = clock.mono_ns()
        now = await anyio.to_thread.run_sync(self._look, run_id)
        known = self._known(run_id, now, asked_ns)
        if known is None:
            known = await anyio.to_thread.run_sync(
                self._tell, now.path, first, limiter=self._openers
            )
            if known.whole:
                self._keep(run_id, known)
            else:
                self._begun = {run_id: known}
        return known

    async def with_item(self, run_id: str, ref: str) -> CachedStory:
        """Return a story that contains this item. An item that ended in the beginning is final there."""
        begun = self._begun.get(run_id)
        item = None if begun is None else begun.story.items.get(ref.partition("~")[0])
        if begun is not None and item is not None and getattr(item, "how", "") is not None:
            now = await anyio.to_thread.run_sync(self._look, run_id)
            if begun.stamp == now.stamp:
                return begun
        return await self.story(run_id)

    def _known(self, run_id: str, now: Now, asked_ns: int) -> CachedStory | None:
        known = self._kept.get(run_id)
        if known is None:
            return None
        # A story whose build began after the request is current for it.
        recent = now.goes_on and known.is_recent(clock.mono_ns())
        if known.stamp == now.stamp or known.began_ns > asked_ns or recent:
            self._kept.move_to_end(run_id)
            return known
        return None

    def _tell(self, path: Path, first: int | None = None) -> CachedStory:
        began = clock.mono_ns()
        # Taken first: later writes make the story outdated.
        stamp = self.stamp(path)
        story = tell(Tape(path), prices=self._prices, first=first)
        return CachedStory(
            path=path, stamp=stamp, story=story, began_ns=began, ended_ns=clock.mono_ns()
        )

    def _keep(self, run_id: str, cached: CachedStory) -> None:
        self._kept[run_id] = cached
        self._kept.move_to_end(run_id)
        while len(self._kept) > 1 and self._weight() > _MOST_EVENTS:
            self._kept.popitem(last=False)

    def _weight(self) -> int:
        return sum(one.story.totals.events for one in self._kept.values())

    def forget(self, run_id: str) -> None:
        self._kept.pop(run_id, None)


T = TypeVar("T")


class SharedAnswers(Generic[T]):
    """Computes shared responses in threads. `workers`: maximum number of concurrent computations."""

    def __init__(self, workers: int) -> None:
        self._limiter = anyio.CapacityLimiter(workers)
        self._locks: dict[Hashable, anyio.Lock] = {}
        self._made: dict[Hashable, tuple[int, T]] = {}

    async def get(self, key: Hashable, make: Callable[[], T]) -> T:
        asked_ns = clock.mono_ns()
        lock = self._locks.setdefault(key, anyio.Lock())
        try:
            async with lock:
                made = self._made.get(key)
                if made is not None and made[0] > asked_ns:
                    return made[1]
                value = await anyio.to_thread.run_sync(self._stamped, make, limiter=self._limiter)
                self._made[key] = value
                return value[1]
        finally:
            if not lock.statistics().tasks_waiting and not lock.locked():
                self._locks.pop(key, None)
                self._made.pop(key, None)

    def _stamped(self, make: Callable[[], T]) -> tuple[int, T]:
        """Return the result with the time at which its computation began."""
        began = clock.mono_ns()
        return began, make()

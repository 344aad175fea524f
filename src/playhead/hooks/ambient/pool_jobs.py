"""Give each worker thread of a pool the jobs that it ran in the recorded run. Knows `ThreadPoolExecutor`.

Idle workers race for the next job, and a pool starts another worker only if none is idle at that moment. Programs see
who won: in the names of threads that they log, and in what they keep for each thread (`threading.local`). The tape has
the number of the worker with the end of each job, and the jobs for which a worker was started (`lane_hooks`).
"""

from __future__ import annotations

import _thread
import queue
import threading
from typing import TYPE_CHECKING, Any

from playhead.hooks.guest import Patches, need
from playhead.hooks.order.lane_hooks import WORKER, submitting
from playhead.recording import order_slot, points
from playhead.replay.time import virtual_time
from playhead.replay.time.waits import RawGuard

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from playhead.recording.lanes import Lane

# The unhooked method of C locks: a replay hooks it for the program.
_acquire = type(_thread.allocate_lock()).acquire
_release = type(_thread.allocate_lock()).release
# A program that has changed may need another worker for a job than the recorded one did. If no thread could continue
# for this long, any idle worker takes the job.
_LONGEST_STILL_NS = 1_000_000_000
# The number of a worker that no pool has.
_NONE = -1


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is concurrent.futures.thread."""
    pool = module.ThreadPoolExecutor
    need(pool, "__init__", "_adjust_thread_count")
    patches.replace(pool, "__init__", _make)
    patches.replace(pool, "_adjust_thread_count", _adjust)


def _make(original: Callable[..., None]) -> Callable[..., None]:
    def make(self: Any, *args: Any, **named: Any) -> None:
        original(self, *args, **named)
        if order_slot.active() is not None and type(self._work_queue) is queue.SimpleQueue:
            self._work_queue = _JobQueue()

    return make


def _adjust(original: Callable[[Any], None]) -> Callable[[Any], None]:
    """Start a worker for the submitted job if, and only if, the recorded pool started one."""

    def adjust(self: Any) -> None:
        job = submitting.lane
        worker = None if job is None else _worker_of(job)
        if job is None or worker is None:
            return original(self)
        idle = self._idle_semaphore
        try:
            self._idle_semaphore = _Idle(idle, any_idle=not _had_new_worker(job))
            original(self)
            # Jobs of tools use workers, too, and a replay does not run them.
            while len(self._threads) <= worker < self._max_workers:
                self._idle_semaphore = _Idle(idle, any_idle=False)
                original(self)
        finally:
            self._idle_semaphore = idle
        return None

    return adjust


class _Idle:
    """Stands in for the semaphore that counts the idle workers of a pool, and says whether there are any."""

    def __init__(self, counted: Any, *, any_idle: bool) -> None:
        self._any_idle = any_idle
        self._counted = counted
        self.release = counted.release

    def acquire(self, *_args: Any, **_named: Any) -> bool:
        if self._any_idle:
            self._counted.acquire(blocking=False)
        return self._any_idle


def _worker_of(job: Lane) -> int | None:
    """Return the number of the worker that ran this job in the recorded run; None if not known. `_NONE`: the program
    cancelled the job before a worker took it.
    """
    head = order_slot.active()
    if head is not None and head.table.was_withdrawn(job.name):
        return _NONE
    place = None if head is None else head.table.lane(job.name, points.DONE, 1)
    return None if place is None else order_slot.worker_of(place.what[3])


def _had_new_worker(job: Lane) -> bool:
    head = order_slot.active()
    return head is not None and head.table.has_new_worker(job.name)


class _JobQueue:
    """The jobs of a pool that no worker has taken yet. Has the methods of `queue.SimpleQueue`."""

    def __init__(self) -> None:
        self._guard = RawGuard()
        # Each job with the number of the worker that ran it in the recorded run. The pool itself puts None.
        self._jobs: list[tuple[Any, int | None]] = []
        # A lock for each thread that waits; released when a job is put or taken.
        self._bells: list[Any] = []

    def put(self, job: Any, block: bool = True, timeout: float | None = None) -> None:
        lane = submitting.lane
        worker = None if job is None or lane is None else _worker_of(lane)
        with self._guard:
            self._jobs.append((job, worker))
        self._ring()

    def put_nowait(self, job: Any) -> None:
        self.put(job)

    def qsize(self) -> int:
        return len(self._jobs)

    def empty(self) -> bool:
        return not self._jobs

    def get_nowait(self) -> Any:
        return self.get(False)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        worker = getattr(threading.current_thread(), WORKER, None)
        got: list[Any] = []
        bell = _thread.allocate_lock()
        _acquire(bell)

        def attempt(seconds: float | None) -> bool:
            while not self._take(worker, got):
                if seconds == 0:
                    return False
                if not _acquire(bell, True, -1 if seconds is None else seconds):
                    return self._take(worker, got)
            return True

        time = virtual_time.active()
        self._bells.append(bell)
        try:
            if time is None or not block:
                attempt(timeout if block else 0)
            else:
                time.wait(timeout, attempt, lambda: not got and self._find(worker) is None)
        finally:
            self._bells.remove(bell)
        if not got:
            raise queue.Empty
        return got[0]

    def _take(self, worker: int | None, got: list[Any]) -> bool:
        with self._guard:
            at = self._find(worker)
            if at is None:
                return False
            got.append(self._jobs.pop(at)[0])
        self._ring()
        return True

    def _find(self, worker: int | None) -> int | None:
        """Return the index of the next job for this worker; None if there is none."""
        for at, (job, of) in enumerate(list(self._jobs)):
            # The end of the pool comes after all jobs before it.
            if at and job is None:
                return None
            # A thread that is not a worker cancels the jobs that are left. It leaves those that ran on the tape.
            if of is None or of == (_NONE if worker is None else worker):
                return at
            # The pool leaves cancelled jobs to its workers, which drop them.
            if of == _NONE and job.future.cancelled():
                return at
        return 0 if self._jobs and _is_free() else None

    def _ring(self) -> None:
        for bell in list(self._bells):
            try:
                _release(bell)
            except RuntimeError:
                continue  # it has been rung already


def _is_free() -> bool:
    """Return whether any worker may take any job: the order of the tape is not kept, or nothing else can continue."""
    head = order_slot.active()
    return head is None or head.time.waits.still_ns() > _LONGEST_STILL_NS

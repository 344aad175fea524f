"""Keep the order in which a run of trio gets callbacks from other threads: results of `trio.to_thread`, and what
`trio.from_thread` asks it to run.

All of these go through `TrioToken.run_sync_soon`, which is `call_soon_threadsafe` of trio: a task of trio itself runs
the callbacks. Knows that method, trio's cache of threads, and that both run outside of the context of the job.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from playhead.hooks.guest import Patches, need
from playhead.recording import lanes, order_slot, points

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from playhead.replay.loop_points import LoopState
    from playhead.replay.points_table import Place


class TrioRun:
    """A run of trio in a replay. `poll` makes the tasks ready whose descriptors are ready now."""

    def __init__(
        self, state: LoopState, wake: Callable[[], None], poll: Callable[[], None]
    ) -> None:
        self.state = state
        self.wake = wake
        self.poll = poll


# By token. Filled by `ambient/waiting_selectors`, in a replay only.
runs: WeakKeyDictionary[Any, TrioRun] = WeakKeyDictionary()


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is trio."""
    core = sys.modules[f"{module.__name__}._core._run"]
    threads = sys.modules[f"{module.__name__}._core._thread_cache"]
    need(core, "GLOBAL_RUN_CONTEXT")
    need(threads, "ThreadCache")
    patches.replace(module.lowlevel.TrioToken, "run_sync_soon", _soon_of(core.GLOBAL_RUN_CONTEXT))
    patches.replace(threads.ThreadCache, "start_thread_soon", _start)


def _start(original: Callable[..., None]) -> Callable[..., None]:
    def start_thread_soon(self: Any, fn: Any, deliver: Any, *rest: Any, **named: Any) -> None:
        if not order_slot.is_kept():
            return original(self, fn, deliver, *rest, **named)
        # A task that abandons its thread may start another one, so each job reports its end in a lane of its own.
        lane = lanes.current.get()
        luggage = [(lanes.current, lane.job()), *((one, one.get()) for one in lanes.carried)]

        def run() -> Any:
            lanes.own_thread(lane)
            try:
                return fn()
            finally:
                lanes.own_thread(None)

        def report(result: Any) -> Any:
            tokens = lanes.unpack(luggage)
            try:
                return deliver(result)
            finally:
                for token in tokens:
                    lanes.reset(token.var, token)

        return original(self, run, report, *rest, **named)

    return start_thread_soon


def _soon_of(context: Any) -> Callable[[Any], Any]:
    def wrap(original: Callable[..., None]) -> Callable[..., None]:
        def run_sync_soon(self: Any, sync_fn: Any, *args: Any, idempotent: bool = False) -> None:
            head, log = order_slot.active(), points.active()
            # Signal handlers make idempotent callbacks. A callback of the run's own thread runs in the next turn.
            if (
                idempotent
                or (head is None and log is None)
                or lanes.is_carried()
                or _is_own(context, self)
            ):
                return original(self, sync_fn, *args, idempotent=idempotent)
            lane = lanes.current.get()
            number = lane.count(points.SOON)
            if head is None:
                return original(self, _noted, lane, number, sync_fn, args)
            place, run = head.table.lane(lane.name, points.SOON, number), runs.get(self)
            if place is None or place.passed or run is None or self._reentry_queue.done:
                return original(self, sync_fn, *args)

            def give(callback: Callable[[], object]) -> None:
                original(self, callback)
                # In the recorded run the selector reported the callback in this turn.
                run.poll()

            _pend(run, place, give, lambda: sync_fn(*args))
            return None

        return run_sync_soon

    return wrap


def _pend(
    run: TrioRun,
    place: Place,
    give: Callable[[Callable[[], object]], None],
    callback: Callable[[], object],
) -> None:
    run.state.pend(
        place,
        lambda: give(callback),
        bool,
        lambda take: give(lambda: take() and callback()),
    )
    run.wake()


def _is_own(context: Any, token: Any) -> bool:
    """Return whether this is the thread of the run."""
    runner = getattr(context, "runner", None)
    return runner is not None and runner.entry_queue is token._reentry_queue


def _noted(lane: lanes.Lane, number: int, sync_fn: Any, args: tuple[Any, ...]) -> object:
    points.note(lane, points.SOON, None, number)
    return sync_fn(*args)

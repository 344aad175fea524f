"""Let waits for descriptors use the time of the replay: `selectors`, `select` and trio.

Event loops wait in these functions. Knows the calling convention of each.
"""

from __future__ import annotations

import _thread
import select
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from playhead import clock
from playhead.hooks.guest import Patches, need
from playhead.hooks.order.trio_callbacks import TrioRun, runs
from playhead.hooks.order.trio_deadlines import begin_run
from playhead.hooks.replacements import Builtin, graft
from playhead.recording import order_slot
from playhead.recording.where import is_program
from playhead.replay.loop_points import LoopState
from playhead.replay.time import virtual_time

_poll = select.poll
_LONGEST_PLAY_NS = 1_000_000_000
_TRIO_WAITS_S = 24 * 60 * 60
_IN, _OUT = select.POLLIN | select.POLLPRI, select.POLLOUT


def hook_selectors(module: ModuleType, patches: Patches) -> None:
    need(module, "BaseSelector", "EVENT_WRITE")
    # Each class once: `DefaultSelector` is a second name of one of them.
    for kind in dict.fromkeys(one for one in vars(module).values() if isinstance(one, type)):
        if issubclass(kind, module.BaseSelector) and "select" in vars(kind):
            patches.replace(kind, "select", _select_of)


def _select_of(original: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    def select(self: Any, timeout: float | None = None) -> list[Any]:
        time = virtual_time.active()
        if time is None:
            return original(self, timeout)
        loop = None if time.is_real else order_slot.loop_here()
        ready: list[Any] = []
        if timeout is not None and timeout <= 0:
            ready = original(self, timeout)
            if loop is not None:
                loop.look(is_busy=True)
                loop.run_due()
            return ready

        def attempt(seconds: float | None) -> bool:
            ready[:] = original(self, seconds)
            if ready and loop is not None and order_slot.is_playing():
                _let_play()
                ready[:] = original(self, 0)
            return bool(ready)

        if loop is not None:
            loop.look(is_busy=False)
        if loop is None or not loop.is_due:
            time.wait(timeout, attempt, lambda: not _has_ready(self), loop=loop)
        if loop is not None:
            loop.run_due()
        return ready

    return select


def _let_play() -> None:
    """Wait until the players of taped processes have written all output that is due.

    In the recorded run several processes may have written before the loop polled. The loop must see all of that
    output in one poll.
    """
    until = clock.mono_ns() + _LONGEST_PLAY_NS
    while order_slot.is_playing() and clock.mono_ns() < until:
        clock.sleep(0.000_05)


def _has_ready(selector: Any) -> bool:
    """Return whether a descriptor of the selector is ready. Another thread calls this while the selector waits."""
    try:
        return _is_ready((key.fd, key.events) for key in list(selector.get_map().values()))
    except (AttributeError, OSError, RuntimeError, ValueError):
        return True  # the selector is being changed or closed, so its thread is not waiting


def _is_ready(asked: Iterable[tuple[int, int]]) -> bool:
    poll = _poll()
    for fd, events in asked:
        poll.register(fd, (_IN if events & 1 else 0) | (_OUT if events & 2 else 0))
    return bool(poll.poll(0))


def hook_select(module: ModuleType, patches: Patches) -> None:
    """Hook `select`, `poll` and `epoll` for programs that call them. Calls of `poll` by libraries are left alone."""
    need(module, "select", "poll")
    patches.replace(module, "select", lambda original: Builtin(_select(original)))
    poll = type(module.poll())
    graft(patches, poll, "poll", _polled(poll.poll, 1000.0, lambda poll: True))
    if hasattr(module, "epoll"):
        is_stuck = _epoll_is_stuck
        graft(patches, module.epoll, "poll", _polled(module.epoll.poll, 1.0, is_stuck))


def _epoll_is_stuck(epoll: Any) -> bool:
    try:
        return not _is_ready([(epoll.fileno(), 1)])
    except (OSError, ValueError):
        return False  # closed


def _select(original: Callable[..., Any]) -> Callable[..., Any]:
    def select(r: Any, w: Any, x: Any, timeout: float | None = None, /) -> Any:
        time = virtual_time.active()
        if time is None or (timeout is not None and not timeout > 0):
            return original(r, w, x, timeout)
        found: list[Any] = []

        def attempt(seconds: float | None) -> bool:
            found[:] = original(r, w, x, seconds)
            return any(found)

        time.wait(timeout, attempt, lambda: not any(original(r, w, x, 0)))
        return tuple(found)

    return select


def _polled(
    original: Callable[..., list[Any]], unit: float, is_stuck: Callable[[Any], bool]
) -> Callable[..., list[Any]]:
    """Wrap a `poll` method. `unit` is the number of its timeout units in a second: 1000 for `poll`, 1 for `epoll`."""

    def poll(self: Any, timeout: float | None = None, *more: Any, **named: Any) -> list[Any]:
        time = virtual_time.active()
        waits = timeout is None or timeout > 0
        if time is None or not waits or not is_program(sys._getframe(1)):
            return original(self, timeout, *more, **named)
        found: list[Any] = []

        def attempt(seconds: float | None) -> bool:
            limit = None if seconds is None else seconds * unit
            found[:] = original(self, limit, *more, **named)
            return bool(found)

        limit = None if timeout is None else timeout / unit
        time.wait(limit, attempt, lambda: is_stuck(self))
        return found

    return poll


def hook_trio(module: ModuleType, patches: Patches) -> None:
    """Replace the clock of trio, and the method in which trio waits for events."""
    core = sys.modules["trio._core._run"]
    need(core, "perf_counter", "TheIOManager")
    manager = core.TheIOManager
    need(manager, "get_events")

    def perf_counter(original: Callable[[], float]) -> Callable[[], float]:
        def read() -> float:
            time = virtual_time.active()
            # Each reading is a little later than the last: trio would sort equal deadlines by memory address.
            return original() if time is None else time.ticking_ns() / 1e9

        return read

    def get_events(original: Callable[..., Any]) -> Callable[..., Any]:
        def waited(self: Any, timeout: float) -> Any:
            time = virtual_time.active()
            if time is None:
                return original(self, timeout)
            loop = None if time.is_real else order_slot.loop_here()
            if loop is not None:
                loop.enter_turn(_thread.get_ident(), begin_run(core.GLOBAL_RUN_CONTEXT.runner))
                loop.look(is_busy=timeout <= 0)
            found: list[Any] = []
            if timeout <= 0 or (loop is not None and loop.is_due):
                found = original(self, 0)
            else:

                def attempt(seconds: float | None) -> bool:
                    found[:] = original(self, seconds)
                    return bool(found)

                # trio's longest wait stands for one without a deadline.
                limit = timeout if timeout < _TRIO_WAITS_S else None
                time.wait(limit, attempt, lambda: _trio_is_stuck(self), loop=loop)
                if loop is not None and not loop.is_due and _is_only_woken(self, found):
                    loop.turn -= (
                        1  # another thread has come to its place: no task runs in this pass
                    )
            if loop is not None:
                if loop.run_reads():
                    found += original(self, 0)
                loop.run_due()
            return found

        return waited

    need(manager, "process_events", "force_wakeup", "_force_wakeup_fd")
    poll = manager.get_events
    patches.replace(core, "perf_counter", perf_counter)
    order_slot.watch_loop(lambda: _trio_state(module, core, poll))
    if hasattr(select, "epoll"):
        patches.replace(manager, "get_events", get_events)


def _trio_is_stuck(manager: Any) -> bool:
    """Return whether trio waits and no descriptor is ready.

    The epoll object alone does not tell: trio registers descriptors with EPOLLONESHOT, so an event that the thread has
    got, and not processed yet, is no longer ready there. The descriptor itself still is. `_registered` (trio 0.22 to
    0.33) has the flags that each of them waits for.
    """
    if not _epoll_is_stuck(manager._epoll):
        return False
    try:
        waiting = [(fd, one.current_flags) for fd, one in list(manager._registered.items())]
        return not _is_ready((fd, _selector_events(flags)) for fd, flags in waiting if flags)
    except (AttributeError, OSError, RuntimeError, ValueError):
        return False  # it is being changed or closed, so its thread is not waiting


def _is_only_woken(manager: Any, found: list[Any]) -> bool:
    return bool(found) and all(fd == manager._force_wakeup_fd for fd, _ in found)


def _selector_events(flags: int) -> int:
    """Return flags of epoll as those of `selectors`, which `_is_ready` takes."""
    return (1 if flags & select.EPOLLIN else 0) | (2 if flags & select.EPOLLOUT else 0)


def _trio_state(module: ModuleType, core: ModuleType, poll: Callable[..., Any]) -> LoopState | None:
    """Return the points that the tasks of the trio run in this thread wait for; None without such a run."""
    try:
        token = module.lowlevel.current_trio_token()
    except RuntimeError:
        return None
    run = runs.get(token)
    if run is None:
        manager = core.GLOBAL_RUN_CONTEXT.runner.io_manager
        # Not by a callback: it would make the task ready that runs callbacks, behind the tasks of this turn.
        wake = manager.force_wakeup
        state = order_slot.make_state(wake, lambda: _TrioFuture(module))

        def poll_all() -> None:
            # trio asks for no more events than there are tasks that wait, and `wake` is one more.
            while events := poll(manager, 0):
                manager.process_events(events)

        run = TrioRun(state, wake, poll_all)
        runs[token] = run
    return run.state


class _TrioFuture:
    """Has the methods of a future that `LoopState` calls."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._event = module.Event()

    def set_result(self, _: None) -> None:
        self._event.set()

    def done(self) -> bool:
        return bool(self._event.is_set())

    def __await__(self) -> Any:
        return self._event.wait().__await__()

    async def yield_once(self) -> None:
        """Let the other tasks run once, even if the task is cancelled."""
        await self._module.lowlevel.cancel_shielded_checkpoint()

    async def shielded(self) -> None:
        """Wait for the result even if the task is cancelled."""
        with self._module.CancelScope(shield=True):
            await self._event.wait()

"""Let threads wait in the time of the replay: `time.sleep`, locks, queues, joins and child processes.

All waits of `threading`, `queue` and `concurrent.futures` end in a lock. So the hook of the lock makes timeouts
follow the time of the replay, and tells the replay which threads wait. Knows where Python waits in C.
"""

from __future__ import annotations

import _thread
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from playhead import clock
from playhead.hooks.guest import Patches, need
from playhead.hooks.order import locks
from playhead.hooks.replacements import Builtin, graft, replace_copies
from playhead.recording import lanes, order_slot, points
from playhead.replay.time import virtual_time
from playhead.replay.time.waits import RawGuard

# Modules that copy the clock when they are imported, possibly before the hooks are installed.
_COPIES = ("threading", "queue", "subprocess", "sched", "socketserver")


def hook_time(module: ModuleType, patches: Patches) -> None:
    need(module, "sleep", "monotonic")
    original = module.sleep
    patches.replace(module, "sleep", lambda real: Builtin(_sleep(real)))
    replace_copies(patches, {id(original): module.sleep})
    # If the hook of the clock is not installed, `real` is the clock itself and nothing changes. It must never be
    # None: every attribute that is None would be replaced.
    real = getattr(module.monotonic, "__wrapped__", module.monotonic)
    for holder in filter(None, map(sys.modules.get, _COPIES)):
        for name in [name for name, value in vars(holder).items() if value is real]:
            patches.replace(holder, name, lambda _: module.monotonic)
    if (sched := sys.modules.get("sched")) is not None:
        _default(patches, sched.scheduler.__init__, (module.monotonic, module.sleep))


def _default(patches: Patches, function: Any, made: tuple[Any, ...]) -> None:
    """Replace the default arguments of a function, which are copies of the originals."""
    before, function.__defaults__ = function.__defaults__, made

    def undo() -> None:
        function.__defaults__ = before

    patches.on_undo(undo)


def _sleep(original: Callable[[float], None]) -> Callable[[float], None]:
    def sleep(seconds: Any, /) -> None:
        time = virtual_time.active()
        if time is None or not isinstance(seconds, (int, float)) or not seconds > 0:
            return original(seconds)
        if not lanes.is_carried():
            if order_slot.wait_for(points.SLEPT) is not None:
                order_slot.acted()
                return None
            order_slot.interrupt_if_due()
            _await_kill()
        return time.sleep(seconds)

    return sleep


def _await_kill() -> None:
    """Sleep for real in a child process whose parent killed it in this sleep: it never returned from it."""
    head, own = order_slot.active(), lanes.MAIN.name
    if head is None or "/" not in own or own not in head.table.cut_lanes:
        return
    if lanes.current.get() is lanes.MAIN or lanes.current.get().name == own:
        # If the program has changed, no signal comes, and the process continues.
        head.table.cut_lanes.discard(own)
        if head.ahead(own) is None:
            clock.sleep(head.time.stall_s)


def hook_threading(module: ModuleType, patches: Patches) -> None:
    again: Any = _thread.RLock
    need(again, "_is_owned", "_release_save", "_acquire_restore")
    for kind, is_stuck, is_mine in (
        (type(_thread.allocate_lock()), _is_locked, _is_never_mine),
        (again, _is_owned, again._is_owned),
    ):
        acquire = _acquire(kind.acquire, is_stuck, is_mine)
        release = _release(kind.release, is_mine)
        graft(patches, kind, "acquire", acquire)
        graft(patches, kind, "__enter__", acquire)
        graft(patches, kind, "release", release)
        graft(patches, kind, "__exit__", release)
    # A condition calls these two before and after its wait.
    graft(patches, again, "_release_save", _release_save(again._release_save))
    graft(patches, again, "_acquire_restore", _acquire_restore(again._acquire_restore))
    handle = getattr(_thread, "_ThreadHandle", None)  # 3.13: Thread.join waits in it
    if handle is not None:
        graft(patches, handle, "join", _join(handle.join))


def _acquire(
    original: Callable[..., bool], is_stuck: Callable[[Any], bool], is_mine: Callable[[Any], bool]
) -> Callable[..., bool]:
    def acquire(self: Any, blocking: bool = True, timeout: float = -1) -> bool:
        is_again = is_mine(self)
        if blocking and timeout == -1 and not is_again:
            locks.before_acquire(self)
        if original(self, False):
            if _contended:
                _arrived(self)
            if not is_again:
                locks.after_acquire(self)
            return True
        time = virtual_time.active()
        if time is None or not blocking or (timeout != -1 and not timeout >= 0):
            came = original(self, blocking, timeout)
            if came:
                locks.after_acquire(self)
            return came

        def attempt(seconds: float | None) -> bool:
            if seconds is None:
                return original(self)
            return original(self, True, seconds) if seconds else original(self, False)

        with _guard:
            hand_over = _contended.setdefault(id(self), _HandOver())
            hand_over.waiters += 1
        still_runs = _end_of_thread(self)
        try:
            # Try once more: only from here on does a release count as a hand-over.
            came = original(self, False) or time.wait(
                None if timeout == -1 else timeout,
                attempt,
                lambda: not hand_over.in_flight and is_stuck(self) and still_runs(),
            )
        finally:
            with _guard:
                hand_over.waiters -= 1
                if not hand_over.waiters:
                    _contended.pop(id(self), None)
        if came:
            hand_over.in_flight = False
            locks.after_acquire(self)
        return came

    return acquire


def _release(original: Callable[..., None], is_mine: Callable[[Any], bool]) -> Callable[..., None]:
    def release(self: Any, *raised: Any) -> None:
        hand_over = _contended.get(id(self)) if _contended else None
        if hand_over is not None:
            hand_over.in_flight = True
        original(self)
        if not is_mine(self):
            locks.after_release(self)
        elif hand_over is not None:
            hand_over.in_flight = False  # acquired twice: the thread still holds it

    return release


def _release_save(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def release_save(self: Any) -> Any:
        hand_over = _contended.get(id(self)) if _contended else None
        if hand_over is not None:
            hand_over.in_flight = True
        state = original(self)
        locks.after_release(self)
        return state

    return release_save


def _acquire_restore(original: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    def acquire_restore(self: Any, state: Any) -> None:
        locks.before_restore(self)
        original(self, state)
        if _contended:
            _arrived(self)
        locks.after_acquire(self)

    return acquire_restore


class _HandOver:
    """A lock that threads wait for.

    `in_flight` means that the lock was released, and that no waiter has returned from its wait since. A waiter may
    have acquired the lock and wait for the interpreter. The lock is locked then, and without this flag the waiter
    would seem to be stuck.
    """

    __slots__ = ("in_flight", "waiters")

    def __init__(self) -> None:
        self.waiters = 0
        self.in_flight = False


_contended: dict[int, _HandOver] = {}
_guard = RawGuard()


def _arrived(lock: Any) -> None:
    hand_over = _contended.get(id(lock))
    if hand_over is not None:
        hand_over.in_flight = False


def _end_of_thread(lock: Any) -> Callable[[], bool]:
    """Return a function that tells whether the holder of this lock can still release it.

    Until Python 3.12, C releases one lock when its thread ends. For that lock the function returns whether the thread
    still runs; for all other locks it returns True.
    """
    threads = list(threading._active.items())  # type: ignore[attr-defined]
    for ident, thread in threads:
        if getattr(thread, "_tstate_lock", None) is lock:
            return lambda: ident in clock.frames()
    return lambda: True


def _is_never_mine(_lock: Any) -> bool:
    """Return False: a thread that holds a plain lock cannot acquire it again."""
    return False


def _is_locked(lock: Any) -> bool:
    return bool(lock.locked())


def _is_owned(lock: Any) -> bool:
    """Return whether a thread holds this RLock.

    Read from its `repr`, because an RLock has no `locked()` before Python 3.14. Trying to acquire it would also
    fail while it passes from one thread to the next.
    """
    return not repr(lock).startswith("<unlocked")


def _join(original: Callable[..., Any]) -> Callable[..., Any]:
    def join(self: Any, timeout: float | None = None) -> Any:
        time = virtual_time.active()
        if time is None or self.is_done():
            return original(self, timeout)

        def attempt(seconds: float | None) -> bool:
            original(self, seconds)
            return bool(self.is_done())

        time.wait(timeout, attempt, lambda: not self.is_done())
        return None

    return join


def hook_subprocess(module: ModuleType, patches: Patches) -> None:
    """Replace the wait for a child with a timeout, which polls the child twenty times a second.

    In a replay the time of a whole day may pass at once, which would be too many polls.
    """
    need(module, "Popen", "TimeoutExpired")
    need(module.Popen, "_wait", "poll")

    def _wait(original: Callable[..., int]) -> Callable[..., int]:
        def wait(self: Any, timeout: float | None) -> int:
            time = virtual_time.active()
            if time is None or time.is_real or timeout is None:
                return original(self, timeout)

            def attempt(seconds: float | None) -> bool:
                if seconds:
                    clock.sleep(seconds)
                return self.poll() is not None

            if time.wait(timeout, attempt, lambda: True):
                return original(self, None)
            raise module.TimeoutExpired(self.args, timeout)

        return wait

    patches.replace(module.Popen, "_wait", _wait)


def hook_queue(module: ModuleType, patches: Patches) -> None:
    """Hook `SimpleQueue`, where the workers of a pool wait: it waits in C for a lock that no other hook sees."""
    need(module, "SimpleQueue", "Empty")
    kind = module.SimpleQueue
    # An item may have left the queue before its waiter has returned from the wait. So each item has a token: it is
    # added before the item is put, and removed after the waiter has got the item.
    tokens: WeakKeyDictionary[Any, list[None]] = WeakKeyDictionary()

    def of(queue: Any) -> list[None]:
        found = tokens.get(queue)
        return tokens.setdefault(queue, [None] * queue.qsize()) if found is None else found

    for name in ("put", "put_nowait"):
        graft(patches, kind, name, _put(getattr(kind, name), of))
    graft(patches, kind, "get", _get(kind.get, module.Empty, of))
    graft(patches, kind, "get_nowait", lambda self: self.get(False))


Tokens = Callable[[Any], "list[None]"]


def _put(original: Callable[..., None], tokens: Tokens) -> Callable[..., None]:
    def put(self: Any, item: Any, *rest: Any, **named: Any) -> None:
        tokens(self).append(None)
        original(self, item, *rest, **named)

    return put


def _get(
    original: Callable[..., Any], empty: type[Exception], tokens: Tokens
) -> Callable[..., Any]:
    def get(self: Any, block: bool = True, timeout: float | None = None) -> Any:
        mine = tokens(self)
        got: list[Any] = []

        def attempt(seconds: float | None) -> bool:
            try:
                got.append(original(self, True, seconds) if seconds != 0 else original(self, False))
            except empty:
                return False
            return True

        time = virtual_time.active()
        if time is None or not block or (timeout is not None and not timeout > 0):
            came = attempt(timeout if block else 0)
        else:
            came = time.wait(timeout, attempt, lambda: not mine)
        if came:
            # Only after the wait is over: without the token, this thread would seem to be stuck in the wait.
            if mine:
                mine.pop()
            return got[0]
        raise empty

    return get

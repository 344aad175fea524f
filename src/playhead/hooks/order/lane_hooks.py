"""Carry lanes into tasks of asyncio and trio, threads and executors. Knows where Python starts them.

Installing is idempotent, and `uninstall` restores the original objects.
"""

from __future__ import annotations

import _thread
import os
import sys
from _weakref import ref
from contextvars import Context
from itertools import count

from playhead.clock import mono_ns
from playhead.host.importing import forget, when_imported
from playhead.host.lean import partial, wrapping
from playhead.recording import lanes, order_slot, points
from playhead.recording.where import OWNERS, PROGRAM, package_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor, Future
    from types import ModuleType
    from typing import Any

    from playhead.recording.lanes import Lane

# Modules whose threads are workers. trio runs each job in the context of the task that waits for it.
_POOLS = ("concurrent.futures.thread", "trio._core._thread_cache")
# The attribute of a future that has the lane of its job and the variables that the job inherited.
_LUGGAGE = "_playhead_luggage"
# The attribute of a thread that has its number among the workers of its pool.
WORKER = "_playhead_worker"
# The original method in C: a replay replaces it for the program.
_acquire = type(_thread.allocate_lock()).acquire
_numbers = count(1)
_originals: list[tuple[type, str, Any]] = []


def install() -> None:
    if _originals:
        return
    when_imported("threading", _hook_threads)
    # asyncio costs 30 ms to import: a program that does not use it must not pay for it.
    when_imported("asyncio.base_events", _hook_asyncio)
    when_imported("concurrent.futures.thread", _hook_executor)
    when_imported("trio", _hook_trio)


def _hook_threads(module: ModuleType) -> None:
    _replace(module.Thread, "start", _carry_thread)


def _hook_asyncio(module: ModuleType) -> None:
    _replace(module.BaseEventLoop, "create_task", _carry_task)
    _replace(module.BaseEventLoop, "shutdown_asyncgens", _close_apart)


def _hook_executor(module: ModuleType) -> None:
    _replace(module.ThreadPoolExecutor, "submit", _carry_job)
    future = module._base.Future
    # A private method. Without this hook the callbacks of all jobs share the lane of the pool, and print in any order.
    if hasattr(future, "_invoke_callbacks"):
        _replace(future, "_invoke_callbacks", _carry_callbacks)
        endings.are_seen = True
    _replace(future, "cancel", _note_cancel)


def _hook_trio(module: ModuleType) -> None:
    # `start_soon` and `start` of a nursery both call this private method. Without this hook trio's tasks share the
    # lane of their parent, and a replay cannot tell which of them closed its answer first.
    runner = getattr(sys.modules.get(f"{module.__name__}._core._run"), "Runner", None)
    if runner is not None and hasattr(runner, "spawn_impl"):
        _replace(runner, "spawn_impl", _carry_trio_task)


def install_loop(loop_class: type) -> None:
    """For event loops that are not asyncio's own (uvloop): the same hook on their class."""
    if _originals and not any(owner is loop_class for owner, _, _ in _originals):
        _replace(loop_class, "create_task", _carry_task)


def uninstall() -> None:
    forget(_hook_threads)
    forget(_hook_asyncio)
    forget(_hook_executor)
    forget(_hook_trio)
    while _originals:
        owner, name, original = _originals.pop()
        if getattr(vars(owner).get(name), "__wrapped__", None) is original:
            setattr(owner, name, original)


def _replace(owner: type, name: str, wrap: Callable[[Any], Any]) -> None:
    original = getattr(owner, name)
    setattr(owner, name, wrapping(wrap(original), original))
    _originals.append((owner, name, original))


def _carry_task(create_task: Callable[..., Any]) -> Callable[..., Any]:
    def carried(loop: Any, coro: Any, **options: Any) -> Any:
        # A task that is made while no loop runs is the program's main task: it stays in the current lane. A context
        # that the caller gives is not changed.
        if options.get("context") is not None or not loop.is_running():
            return numbered(create_task(loop, coro, **options))
        token = lanes.current.set(lanes.current.get().child())
        try:
            # Copies the context as it is now.
            return numbered(create_task(loop, coro, **options))
        finally:
            lanes.current.reset(token)

    return carried


def _close_apart(shutdown: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Close the generators of libraries in a lane of their own when a loop ends: a client leaves one open if its
    request was cancelled, and a replay does not have it.
    """

    async def closed(self: Any) -> None:
        left = getattr(self, "_asyncgens", None)
        others = [one for one in left or () if not _is_own(one.ag_code.co_filename)]
        if left is None or not others:
            await shutdown(self)
            return
        left.difference_update(others)
        await shutdown(self)
        left.update(others)
        token = lanes.current.set(lanes.current.get().transport())
        try:
            await shutdown(self)
        finally:
            lanes.reset(lanes.current, token)

    return closed


def _is_own(file: str) -> bool:
    return OWNERS[file] == PROGRAM and not package_of(file)


def numbered(task: Any) -> Any:
    """Give the task or future a number. Sets of tasks iterate in the order of these numbers (`task_sets`)."""
    try:
        setattr(task, lanes.NUMBER, next(_numbers))
    except AttributeError:
        return task  # its class has slots
    return task


def _carry_trio_task(spawn: Callable[..., Any]) -> Callable[..., Any]:
    def carried(self: Any, *args: Any, **options: Any) -> Any:
        # The program's main task and the tasks of trio itself stay in the current lane.
        is_internal = options.get("system_task") or getattr(self, "main_task", None) is None
        if is_internal or options.get("context") is not None:
            return spawn(self, *args, **options)
        token = lanes.current.set(lanes.current.get().child())
        try:
            return spawn(self, *args, **options)  # copies the context as it is now
        finally:
            lanes.current.reset(token)

    return carried


def _carry_thread(start: Callable[..., None]) -> Callable[..., None]:
    def carried(self: threading.Thread) -> None:
        # Pools start a worker when none is idle, which is a race. Counting workers would make the names of
        # lanes a race too, so jobs are counted where they are submitted.
        if getattr(getattr(self, "_target", None), "__module__", None) in _POOLS:
            lanes.start_thread()
            _number_worker(self)
            return start(self)
        if getattr(self, "_ident", None) is not None:
            return start(self)  # already started: start() raises
        luggage = lanes.pack_transport() if _ends_executor(self) else lanes.pack()
        run, own = self.run, self.__dict__.get("run")
        # A target that is `copy_context().run` would bring the lane of the thread that copied the context.
        target, args = getattr(self, "_target", None), getattr(self, "_args", ())
        for context in _contexts_of(target, tuple(args)):
            context.run(lanes.unpack, luggage[:1])

        def in_lane() -> None:
            put_back()
            lanes.unpack(luggage)
            lanes.own_thread(luggage[0][1])
            run()

        def put_back() -> None:
            if own is None:
                self.__dict__.pop("run", None)
            else:
                self.__dict__["run"] = own

        self.run = in_lane  # type: ignore[method-assign]  # taken off again by the thread itself
        try:
            start(self)
        except BaseException:
            put_back()
            raise
        return None

    return carried


class _Submitting(_thread._local):
    """The lane of the job that this thread submits to a pool; None while it submits none."""

    lane: Lane | None = None


submitting = _Submitting()


def _number_worker(thread: threading.Thread) -> None:
    """Number a thread that a pool starts, and note for which job it was started."""
    pool = getattr(thread, "_args", ())[:1]
    # A private attribute of ThreadPoolExecutor, whose workers have a weak reference to their pool.
    others = getattr(pool[0](), "_threads", None) if pool and isinstance(pool[0], ref) else None
    if others is not None:
        setattr(thread, WORKER, len(others))
        if submitting.lane is not None:
            points.note(submitting.lane, points.STARTED)


def _ends_executor(thread: threading.Thread) -> bool:
    """Return whether asyncio starts this thread to shut down the executor of a loop. If only look-ups of host names
    used the executor, a replay has neither.
    """
    target = getattr(thread, "_target", None)
    return getattr(target, "__name__", None) == "_do_shutdown" and isinstance(
        getattr(target, "__self__", None), _loop_types()
    )


def _loop_types() -> tuple[type, ...]:
    base = sys.modules.get("asyncio.base_events")
    return () if base is None else (base.BaseEventLoop,)


def _carry_job(submit: Callable[..., Future[Any]]) -> Callable[..., Future[Any]]:
    def carried(
        self: Executor, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Future[Any]:
        luggage = lanes.pack()
        for context in _contexts_of(fn, args):
            context.run(lanes.unpack, luggage[:1])
        order_slot.submit(luggage[0][1])
        submitted_ns = mono_ns()

        def in_lane(*args: Any, **kwargs: Any) -> Any:
            before = lanes.unpack(luggage)
            lanes.own_thread(luggage[0][1])
            try:
                return fn(*args, **kwargs)
            finally:
                lanes.own_thread(None)
                # From here on other lanes can learn that the job is done.
                order_slot.wait_for(points.DONE)
                endings.note(submitted_ns)
                for token in before:
                    lanes.reset(token.var, token)

        before, submitting.lane = submitting.lane, luggage[0][1]
        try:
            future = submit(self, in_lane, *args, **kwargs)
        finally:
            submitting.lane = before
        # The lane of the job reports the job's end, in whichever thread that runs.
        future.__dict__[lanes.OF_JOB] = luggage[0][1]
        future.__dict__[_LUGGAGE] = luggage
        return future

    return carried


class _Endings:
    """Lets one job end at a time, from noting its point until its future has the result.

    Otherwise a thread that has noted its point may have to wait for the interpreter. Another job could end meanwhile,
    and the program would learn of that one first.
    """

    # A thread that never sets the result of its future must not block the others: recording fails open.
    _LONGEST_S = 1.0

    def __init__(self) -> None:
        # Whether the hook that calls `end` is installed.
        self.are_seen = False
        self.start_anew()

    def start_anew(self) -> None:
        """Make a new lock, also in a forked child, which lacks the thread that held the old one."""
        self._lock = _thread.allocate_lock()
        self._holder: int | None = None

    def hold(self) -> None:
        """Block ending jobs, except that of this thread, until `end` is called."""
        me = _thread.get_ident()
        if self.are_seen and self._holder != me and _acquire(self._lock, True, self._LONGEST_S):
            self._holder = me

    def note(self, submitted_ns: int) -> None:
        """Note the point at which the job of this thread is done. Block other ending jobs until `end` is called."""
        if points.active() is None:
            return
        self.hold()
        worker = getattr(sys.modules["threading"].current_thread(), WORKER, None)
        detail = order_slot.job_end(mono_ns() - submitted_ns, worker)
        points.note(lanes.current.get(), points.DONE, detail)

    def end(self) -> None:
        """Let the next job end: this thread has done what it blocked the others for."""
        if self._holder == _thread.get_ident():
            self._holder = None
            self._lock.release()


endings = _Endings()
os.register_at_fork(after_in_child=endings.start_anew)


def _carry_callbacks(invoke: Callable[[Any], None]) -> Callable[[Any], None]:
    """Call the callbacks of a job's future in the lane of the job, in the thread that ends it.

    The callbacks belong to the same tool as the job. Otherwise the end of a tool's job would be a point of the program
    whenever the job ends after its task began to wait for it. A replay does not run the tool, so it would never reach
    that point.
    """

    def invoked(self: Any) -> None:
        endings.end()
        luggage = self.__dict__.get(_LUGGAGE)
        # If the program cancels the job, the callbacks run in the lane that cancels it.
        if luggage is None or not self._done_callbacks or self.cancelled():
            return invoke(self)
        tokens = lanes.unpack(luggage)
        lanes.own_thread(luggage[0][1])
        try:
            invoke(self)
        finally:
            lanes.own_thread(None)
            for token in tokens:
                lanes.reset(token.var, token)
        return None

    return invoked


def _note_cancel(cancel: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Note jobs that are cancelled before a worker takes them: whether one had taken a job is a race."""

    def noted(self: Any) -> bool:
        job = self.__dict__.get(lanes.OF_JOB)
        if job is None or self.cancelled():
            return cancel(self)
        if order_slot.has_run(job):
            # A worker took the job in the recorded run, and takes it now.
            return False
        is_withdrawn = cancel(self)
        if is_withdrawn:
            points.note(job, points.WITHDRAWN)
        return is_withdrawn

    return noted


def _contexts_of(fn: Any, args: tuple[Any, ...]) -> Iterator[Context]:
    """Yield the contexts in which a job runs its function (`submit(copy_context().run, …)`, to_thread, LangChain).

    The lane must be set in these contexts, because they hide the lane that is set outside. LangGraph uses two, one
    inside the other: `partial(context.run, other.run, function)`.
    """
    parts = (fn.func, *fn.args, *args) if isinstance(fn, partial) else (fn, *args)
    for part in parts:
        context = getattr(part, "__self__", None)
        if isinstance(context, Context) and not _is_entered(context):
            yield context


def _is_entered(context: Context) -> bool:
    try:
        context.run(int)
    except RuntimeError:
        return True
    return False

"""Keep the order in which deadlines of trio pass: those of cancel scopes, and of sleeps, which are scopes as well.

A deadline is identified like a timer of asyncio (`event_loops`): by its lane and a number that counts the deadlines of
the lane. The tape also has its delay. In a replay, trio does not see a deadline that is on the tape. The deadline
passes at its place, or never if the program left its scope in time.

The passes of trio's loop are its turns. Each pass waits for events, calls `Deadlines.expire`, and runs a batch of
tasks. Knows trio's private classes `Deadlines` and `CancelScope` (trio 0.22 to 0.35).
"""

from __future__ import annotations

import _thread
import sys
from typing import TYPE_CHECKING, Any

from playhead.hooks.guest import Patches, need
from playhead.hooks.order.event_loops import is_as_taped, number_loop
from playhead.recording import lanes, order_slot, points

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from playhead.replay.playhead import Playhead

_KIND = f"{points.TIMER}:trio"
_CANCELLED_KIND = f"{points.CANCELLED}:trio"
_NO_TURN = (0, 0)
_NEVER = float("inf")
# How much later than its deadline a sleep may have begun in the recorded run: a busy machine did not run the thread.
_LATE_S = 0.05

# Registered deadlines of a recording, by the id of their scope: scopes have slots, so they take no attributes.
_recorded: dict[int, tuple[lanes.Lane, int, float]] = {}
# Deadlines of a replay that trio does not see, by the id of their scope.
_held: dict[int, _Held] = {}
# By thread: the deadlines that pass in this pass of the loop; and the loop's number and pass.
_due: dict[int, list[_Held]] = {}
_turns: dict[int, tuple[Any, tuple[int, int]]] = {}
# By thread: the scope whose deadline was removed last. If the program changes a deadline, the new one is added at once.
_removed: dict[int, int] = {}
# The delays of scopes that begin now, by the id of the scope. Measured a little later, a delay would be shorter by the
# time for which a busy machine did not run the thread.
_nominal: dict[int, float] = {}
# Threads in which trio expires deadlines.
_expiring: set[int] = set()


class _Held:
    """A deadline that passes at its place on the tape."""

    __slots__ = ("scope",)

    def __init__(self, scope: Any) -> None:
        self.scope = scope


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is trio."""
    core = sys.modules[f"{module.__name__}._core._run"]
    need(core, "Deadlines", "GLOBAL_RUN_CONTEXT", "CancelScope")
    need(core.Deadlines, "add", "remove", "expire")
    context = core.GLOBAL_RUN_CONTEXT

    def turn() -> tuple[int, int]:
        # Called for every point, also in programs that import trio and never run it.
        runner = getattr(context, "runner", None)
        return _NO_TURN if runner is None else _turn_of(runner)

    points.watch_trio(turn)
    patches.replace(core.Deadlines, "add", _add_of(core))
    patches.replace(core.Deadlines, "remove", _remove)
    patches.replace(core.CancelScope, "__enter__", _enter)
    patches.replace(core.Deadlines, "expire", _expire_of(core))
    patches.on_undo(lambda: points.watch_trio(lambda: _NO_TURN))


def _turn_of(runner: Any) -> tuple[int, int]:
    known = None if runner is None else _turns.get(_thread.get_ident())
    return known[1] if known is not None and known[0] is runner else _NO_TURN


def begin_run(runner: Any) -> int:
    """Return the number of this run of trio, which begins now or has begun before in this thread."""
    loop = _turn_of(runner)[0]
    if not loop:
        loop = number_loop()
        _turns[_thread.get_ident()] = (runner, (loop, 0))
    return loop


def _add_of(core: ModuleType) -> Callable[[Any], Any]:
    def wrap(original: Callable[..., None]) -> Callable[..., None]:
        def add(self: Any, deadline: float, cancel_scope: Any) -> None:
            head, log = order_slot.active(), points.active()
            if (head is None and log is None) or lanes.is_carried():
                return original(self, deadline, cancel_scope)
            lane, name = lanes.current.get(), id(cancel_scope)
            number, delay = lane.count(_KIND), _nominal.pop(name, None)
            if delay is None:
                delay = max(0.0, deadline - core.current_time())
            if head is None:
                _recorded[name] = (lane, number, round(delay, 6))
                return original(self, deadline, cancel_scope)
            # The delay of a changed deadline is what was left of the old one, so it differs in each run.
            is_moved = _removed.pop(_thread.get_ident(), None) == name
            key = (lane.name, _KIND, number)
            if _hold(head, core, cancel_scope, key, None if is_moved else delay):
                return None
            return original(self, deadline, cancel_scope)

        return add

    return wrap


def _hold(
    head: Playhead, core: ModuleType, scope: Any, key: tuple[str, str, int], delay: float | None
) -> bool:
    """Let the deadline pass at its place on the tape. Return False if the tape does not have it. A `delay` of None is
    not compared.
    """
    place = head.table.lane(*key)
    then = head.table.cancelled(*key) if place is None else place.what[3]
    state = order_slot.loop_here()
    if state is None or then is None:
        return False
    if delay is not None and not is_as_taped(then, delay, _LATE_S):
        return False
    name, me = id(scope), _thread.get_ident()
    # A new object for each deadline: the program may change the deadline of a scope. It keeps the scope alive, so that
    # no other scope gets its id.
    deadline = _held[name] = _Held(scope)

    def run() -> None:
        _due.setdefault(me, []).append(deadline)

    def is_dead() -> bool:
        return _held.get(name) is not deadline

    if place is None:
        state.pend_late(scope._registered_deadline, run, is_dead)
    else:
        state.pend(place, run, is_dead)
    return True


def _enter(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def __enter__(self: Any) -> Any:  # noqa: N807  it stands for that
        # Older versions of trio compute the deadline when the scope is made.
        delay = getattr(self, "_relative_deadline", None)
        if delay is not None and delay < _NEVER:
            _nominal[id(self)] = delay
        try:
            return original(self)
        finally:
            _nominal.pop(id(self), None)

    return __enter__


def _remove(original: Callable[..., None]) -> Callable[..., None]:
    def remove(self: Any, deadline: float, cancel_scope: Any) -> None:
        _removed[_thread.get_ident()] = id(cancel_scope)
        if _held.pop(id(cancel_scope), None) is not None:
            return
        if _recorded:
            known = _recorded.pop(id(cancel_scope), None)
            if known is not None:
                kind = _KIND if _thread.get_ident() in _expiring else _CANCELLED_KIND
                points.note(known[0], kind, known[2], known[1])
        original(self, deadline, cancel_scope)

    return remove


def _expire_of(core: ModuleType) -> Callable[[Any], Any]:
    def wrap(original: Callable[..., bool]) -> Callable[..., bool]:
        def expire(self: Any, now: float) -> bool:
            me, runner = _thread.get_ident(), getattr(core.GLOBAL_RUN_CONTEXT, "runner", None)
            if runner is not None:
                loop = begin_run(runner)
                _turns[me] = (runner, (loop, _turn_of(runner)[1] + 1))
            due = _due.pop(me, ())
            for one in due:
                if _held.get(id(one.scope)) is one:
                    _cancel(core, one.scope)
            _expiring.add(me)
            try:
                return original(self, now) or bool(due)
            finally:
                _expiring.discard(me)

        return expire

    return wrap


def _cancel(core: ModuleType, scope: Any) -> None:
    """Cancel a scope as trio does when its deadline has passed: since trio 0.31 with a reason."""
    if hasattr(core, "CancelReason") and hasattr(scope, "_cancel"):
        scope._cancel(core.CancelReason(source="deadline"))
    else:
        scope.cancel()

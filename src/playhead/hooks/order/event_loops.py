"""Keep the order of events in asyncio: the turns of an event loop, its timers, and callbacks from other threads.

A timer is identified by its lane, the name of its callback, and a number that counts such timers of the lane. The tape
also has its delay: a timer whose delay has changed counts as a new timer.

Knows `BaseEventLoop` and its handles. uvloop has neither in Python: see `hook_uvloop`.
"""

from __future__ import annotations

import _thread
import sys
from typing import Any

from playhead.hooks.guest import Patches, need
from playhead.hooks.order import ready_order
from playhead.host import loop_frames
from playhead.recording import deck, lanes, order_slot, points

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from playhead.replay.loop_points import LoopState
    from playhead.replay.playhead import Playhead
    from playhead.replay.points_table import Place

_TURN = "_playhead_turn"
_STATE = "_playhead_state"
# How much the delay of a timer may differ from the tape, in seconds plus a fraction of the delay. The delay is measured
# from the moment at which the loop gets the timer, so it varies a little. On the tape it is shorter by the time for
# which other threads or programs ran in between.
_TOLERANCE_S, _TOLERANCE, _LATE_S = 0.002, 0.02, 0.01

_loops = 0
# Pending timers of a recording, by the id of their handle: handles have slots, so they take no attributes.
_timers: dict[int, tuple[lanes.Lane, str, int, float]] = {}


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is asyncio.base_events."""
    loop = module.BaseEventLoop
    need(loop, "_run_once", "call_at", "call_soon_threadsafe", "_write_to_self", "_check_closed")
    handles = module.events
    need(handles, "TimerHandle", "_get_running_loop")
    need(handles.TimerHandle, "_run", "cancel")
    points.watch_loops(handles._get_running_loop)
    patches.replace(loop, "_run_once", _count_turns)
    patches.replace(loop, "call_at", _call_at)
    patches.replace(loop, "call_soon_threadsafe", _soon_of(handles))
    patches.replace(handles.TimerHandle, "_run", _fire)
    patches.replace(handles.TimerHandle, "cancel", _cancel)
    order_slot.watch_loop(lambda: _state_here(handles._get_running_loop))
    patches.on_undo(lambda: points.watch_loops(lambda: None))


def hook_uvloop(module: ModuleType, patches: Patches) -> None:
    """Replace uvloop's loop by asyncio's, while recording and in a replay.

    uvloop waits, connects, encrypts and accepts in C, with its own clock, and its turns cannot be counted. Its
    connections would not be on the tape, and completions of one turn would be replayed in two. asyncio's loop does
    the same things a few microseconds slower, which does not matter beside the calls of an agent.

    A recording does not replace uvloop if one of its loops is already running, or if the process has several runs.
    """
    need(module, "Loop", "new_event_loop")
    asyncio = sys.modules["asyncio"]
    if not deck.is_replay() and (
        points.of_process() is None or isinstance(asyncio._get_running_loop(), module.Loop)
    ):
        return
    patches.replace(module, "Loop", lambda _: asyncio.SelectorEventLoop)


def _count_turns(original: Callable[[Any], None]) -> Callable[[Any], None]:
    def _run_once(self: Any) -> None:
        known = self.__dict__
        turn = known.get(_TURN)
        if turn is None:
            lanes.own_thread(None)
            turn = known[_TURN] = (number_loop(), 0)
        known[_TURN] = (turn[0], turn[1] + 1)
        if order_slot.active() is not None:
            state_of(self).enter_turn(_thread.get_ident(), turn[0])
        original(self)

    return _run_once


def number_loop() -> int:
    """Return the number of an event loop that begins to run in this thread. In a replay it is the number of the tape:
    loops of several threads begin in any order.
    """
    global _loops  # noqa: PLW0603  one count a process
    _loops += 1
    head, lane = order_slot.active(), lanes.current.get()
    if head is None:
        points.note_loop(lane, _loops)
        return _loops
    return head.table.loop(lane.name, lane.count(points.LOOP)) or _loops


# Names of timers that HTTP clients written in C set for their transfers. A replay sets none of them.
_CARRIERS = ("AsyncCurl.",)


def state_of(loop: Any) -> LoopState:
    """Return the state of this loop, which has the points that its tasks wait for."""
    state: LoopState | None = loop.__dict__.get(_STATE)
    if state is None:
        state = loop.__dict__[_STATE] = order_slot.make_state(
            loop._write_to_self,
            loop.create_future,
            lambda index: ready_order.place_last(loop, index),
            lambda *task: ready_order.arrange(loop, *task),
        )
    return state


def _state_here(running: Callable[[], Any]) -> LoopState | None:
    loop = running()
    # The turns of a loop that is not asyncio's cannot be counted.
    return state_of(loop) if loop is not None and _TURN in loop.__dict__ else None


def _is_ours() -> bool:
    """Return whether the current code transports a request, which a replay does not repeat."""
    return lanes.is_carried()


def _name(callback: Any) -> str:
    return getattr(callback, "__qualname__", None) or type(callback).__qualname__


def _call_at(original: Callable[..., Any]) -> Callable[..., Any]:
    def call_at(self: Any, when: Any, callback: Any, *args: Any, context: Any = None) -> Any:
        # Read first: the delay is measured from the moment at which the program computed the deadline.
        now = self.time()
        timer = original(self, when, callback, *args, context=context)
        head, log = order_slot.active(), points.active()
        if (head is None and log is None) or _is_ours() or _name(callback).startswith(_CARRIERS):
            return timer
        lane, kind = lanes.current.get(), f"{points.TIMER}:{_name(callback)}"
        number, delay = lane.count(kind), max(0.0, when - now)
        if head is None:
            _timers[id(timer)] = (lane, kind, number, round(delay, 6))
        else:
            _hold(head, self, timer, (lane.name, kind, number), delay)
        return timer

    return call_at


def _hold(head: Playhead, loop: Any, timer: Any, key: tuple[str, str, int], delay: float) -> None:
    """If the tape has this timer, let it fire at its place on the tape and not at its deadline."""
    place = head.table.lane(*key)
    then = head.table.cancelled(*key) if place is None else place.what[3]
    if not is_as_taped(then, delay):
        return  # the timer is new, or its delay has changed
    _unschedule(loop, timer)

    def run() -> None:
        loop._ready.append(timer)

    def call_soon(take: Callable[[], bool]) -> None:
        call_if_due(loop, take, timer._run)

    def is_dead() -> bool:
        return bool(timer._cancelled)

    if place is None:
        state_of(loop).pend_late(timer._when, run, is_dead)
    else:
        state_of(loop).pend(place, run, is_dead, call_soon)


def is_as_taped(then: Any, delay: float, late_s: float = _LATE_S) -> bool:
    """Return whether a timer has the delay of the tape, `then`, which may have been measured this much too late."""
    differs = _TOLERANCE_S + _TOLERANCE * delay
    return isinstance(then, (int, float)) and -differs <= delay - then <= differs + late_s


def call_if_due(loop: Any, take: Callable[[], bool], run: Callable[[], None]) -> None:
    """Call `take` in the loop's next turn, and `run` if it returns True."""

    def taken() -> None:
        if take():
            run()

    loop.call_soon(taken)


def _unschedule(loop: Any, timer: Any) -> None:
    """Remove the timer from the loop's heap. Compares by identity, because handles with equal times are equal."""
    heap = loop._scheduled
    at = next((n for n, one in enumerate(heap) if one is timer), None)
    if at is not None:
        heap[at] = heap[-1]
        heap.pop()
        heap.sort()  # a sorted list is a heap
        timer._scheduled = False


def _fire(original: Callable[[Any], None]) -> Callable[[Any], None]:
    def _run(self: Any) -> None:
        if _timers:
            known = _timers.pop(id(self), None)
            if known is not None:
                points.note(known[0], known[1], known[3], known[2])
        original(self)

    return _run


def _cancel(original: Callable[[Any], None]) -> Callable[[Any], None]:
    def cancel(self: Any) -> None:
        if _timers:
            known = _timers.pop(id(self), None)
            if known is not None:
                kind = known[1].replace(points.TIMER, points.CANCELLED, 1)
                points.note(known[0], kind, known[3], known[2])
        original(self)

    return cancel


def _soon_of(handles: ModuleType) -> Callable[[Any], Any]:
    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def call_soon_threadsafe(self: Any, callback: Any, *args: Any, context: Any = None) -> Any:
            head, log = order_slot.active(), points.active()
            if (head is None and log is None) or _is_ours():
                return original(self, callback, *args, context=context)
            # The lane of a job reports the job's end, in whichever thread the callback runs.
            source = getattr(args[-1], "__dict__", None) if args else None
            lane = (source or {}).get(lanes.OF_JOB) or lanes.current.get()
            number, is_own = lane.count(points.SOON), handles._get_running_loop() is self
            if head is None:
                key = (lane, number, is_own)
                return original(self, _noted, key, callback, args, context=context)
            place = head.table.lane(lane.name, points.SOON, number)
            if place is None or place.passed:
                return original(self, callback, *args, context=context)
            if is_own and place.is_of_loop:
                # Called in the loop's own thread, so the callback's order is fixed, as with `call_soon`. If another
                # thread called it on the tape, its job had not ended when the loop asked for its result.
                state_of(self).come(place)
                return original(self, _passing, self, place, callback, args, context=context)
            self._check_closed()
            handle = handles.Handle(callback, args, self, context)
            state_of(self).pend(
                place,
                lambda: self._ready.append(handle),
                lambda: bool(handle._cancelled),
                lambda take: call_if_due(self, take, handle._run),
            )
            self._write_to_self()
            return handle

        return call_soon_threadsafe

    return wrap


def _noted(key: tuple[lanes.Lane, int, bool], callback: Any, args: tuple[Any, ...]) -> Any:
    lane, number, is_own = key
    where = loop_frames.place_in_turn()
    detail: int | str | None = None if where is None else where.index
    if is_own:
        detail = points.FROM_LOOP if where is None else -1 - where.index
    points.note(lane, points.SOON, detail, number)
    return callback(*args)


def _passing(loop: Any, place: Place, callback: Any, args: tuple[Any, ...]) -> Any:
    head = order_slot.active()
    if head is not None:
        head.note(place, state_of(loop))
    return callback(*args)

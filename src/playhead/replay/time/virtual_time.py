"""The time of a replay: it stands still while a thread works, and jumps when all threads wait.

So sleeps and timeouts cost nothing, and no timeout fires that did not fire in the recorded run: while an answer
is on its way (a thread computes, a child runs) no deadline comes nearer. After the first live call, time is real.
Knows which thread waits for what, and until when; not how Python waits (`hooks/ambient/waiting_*`).
"""

from __future__ import annotations

import _thread
import math
import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from playhead import clock
from playhead.host import interrupts
from playhead.recording import lanes, pacing
from playhead.replay.time.wait_table import WaitTable
from playhead.replay.time.waits import RawGuard, Released, ThreadWait

if TYPE_CHECKING:
    from playhead.recording.lanes import Lane
    from playhead.replay.playhead import Gate, Playhead
    from playhead.replay.points_table import Place

# Real sleeps between two checks of the other threads.
_SHORTEST_NAP = 0.000_05
_LONGEST_NAP = 0.002
# For a worker that waits for its parent: the parent waits until the worker uses no processor time.
_HOLDING_NAP = 0.25
_MOST_BEATS = 50
# After this time a deadline passes however busy the other threads are: it would have passed in the real run, too.
_LONGEST_STAND_NS = 60 * 1_000_000_000
# A taped answer waits no longer than this for threads that compute: their order is a race anyway.
_LONGEST_REST_NS = 100_000_000
# A thread that is alone skips sleeps of up to this length. Longer ones go through `wait`.
_LONGEST_SKIP_S = 7 * 24 * 3600
# A program that only sends heartbeats must not run at full speed for ever: this far ahead of the tape, time is
# real.
_FURTHEST_NS = 7 * 24 * 3600 * 1_000_000_000


# Interval at which a wait without a timeout checks whether anything can end it.
_LOOK_AGAIN_S = 0.5
# A program that has changed often waits for an answer that it will never get.
_DIVERGED_STALL_S = 1.0


_current_frames = clock.frames


# Each reading advances the clock by this much: enough to change a float of seconds.
_TICK_NS = 10
# A real sleep ends after its deadline, never exactly at it. Loops rely on that: asyncio compares floats, which have a
# limited resolution.
_BEYOND_NS = 1_000


class VirtualTime:
    """The clock of a replay, and all waits that are measured by it.

    Each caller of `wait` passes `attempt(seconds)`, which waits for real up to that time and returns whether its
    condition became true.

    With `pace` everything takes as long as it took. `on_end` is called when time would run past `end_ns`, where the
    tape ends.
    """

    def __init__(
        self,
        *,
        began_ns: int,
        pace: bool = False,
        end_ns: int | None = None,
        on_end: Callable[[], None] | None = None,
    ) -> None:
        lanes.begin_replay()
        # Whether time is real: because the user asked for it, or because something is live.
        self.is_real = pace
        # Whether answers from the tape take as long as they took.
        self.rests = True
        # Whether waiting is hooked. Only then may a waiting program see this time.
        self.drives = False
        self.end_ns = end_ns
        self.on_end = on_end
        # Whether the script around this process has yet to kill it, as it did then. Until then no timeout fires.
        self.is_ended_by_script: Callable[[], bool] = _never
        # Called when no thread can continue for `stall_s` seconds.
        self.on_stall: Callable[[float], None] | None = None
        self.stall_s = 5.0
        # Whether the replay differs from its tape already. Then a wait that nothing can end is no surprise.
        self.has_diverged: Callable[[], bool] = _never
        # The number of timeouts that have passed since a thread came to a place.
        self._beats = 0
        # Keeps the order of the tape; None: completions come in the order of their times.
        self.order: Playhead | None = None
        self._now = began_ns
        self._furthest = max(began_ns, end_ns or 0) + _FURTHEST_NS
        self._moved = began_ns
        self._looked = clock.mono_ns()
        self.waits = WaitTable()
        self._guard = RawGuard()
        _alive.add(self)

    def now_ns(self) -> int:
        if self.is_real:
            self._look()
        return self._now

    def ticking_ns(self) -> int:
        """Return the time, a little later with each call: `multiprocessing.connection.wait` and others poll until the
        clock shows more than the deadline, which may be now.
        """
        if self.is_real:
            return self.now_ns()
        with self._guard:
            self._now += _TICK_NS
            return self._now

    def moving_ns(self) -> int:
        """Return the time plus the real time since its last jump, for loops that wait by polling the clock."""
        if self.is_real:
            return self.now_ns()
        with self._guard:
            self._moved = max(self._moved, self._now + clock.mono_ns() - self._looked)
            return self._moved

    def go_live(self) -> None:
        """Make time real from now on: a program that backs off from a live service must really wait. Answers
        that still come from the tape come at once.
        """
        if not self.is_real:
            self._looked = clock.mono_ns()
            self.is_real = True
            self.rests = False

    def _look(self) -> None:
        with self._guard:
            real = clock.mono_ns()
            self._now += real - self._looked
            self._looked = real

    def sleep(self, seconds: float) -> None:
        """Replacement for `time.sleep`."""
        if self.is_real:
            return clock.sleep(seconds)
        if not self._skip(math.ceil(seconds * 1e9) if seconds < _LONGEST_SKIP_S else None):
            self.wait(seconds, _nap, _always)
        return None

    def rest(self, ns: int) -> None:
        """See `pacing`."""
        if not self.rests:
            return None
        if self.order is not None and not self.is_real and (place := _place_of(ns)) is not None:
            self.order.arrive(place)
            return None
        if self.is_real:
            return clock.sleep(ns / 1e9)
        if not self._skip(ns):
            self.wait(ns / 1e9, _nap, _always, patience_ns=_LONGEST_REST_NS)
        return None

    async def rest_async(self, ns: int) -> bool:
        """See `pacing`."""
        if self.order is None or self.is_real:
            return False
        return await self.order.arrive_async(ns)

    async def abandon(self, ns: int) -> bool:
        """See `pacing`."""
        if self.order is None or self.is_real:
            return False
        return await self.order.abandon(ns)

    async def take_async(self, lane: Lane, kind: str) -> None:
        """See `pacing`."""
        if self.order is not None and not self.is_real:
            await self.order.take_async(lane, kind)

    def follow(self, ns: int) -> None:
        """Advance the clock to the time of the point that the replay has reached."""
        with self._guard:
            if ns > self._now:
                self._now = ns
                self._looked = clock.mono_ns()

    def wait_at(self, gate: Gate) -> None:
        """Wait until the replay has come to the place of this gate."""
        me = _thread.get_ident()
        if self.is_real or me in self.waits.now:
            return
        self._beats = 0
        wait, handled = ThreadWait(None, gate.is_stuck, gate), sys.exc_info()[1]
        self.waits.enter(me, wait)
        try:
            self._poll(wait, gate.attempt, clock.mono_ns() + _LONGEST_STAND_NS)
        except BaseException as error:
            interrupts.strip_if_interrupt(error, handled)
            raise error  # noqa: TRY201  3.10 would restore the stripped frames
        finally:
            self.waits.enter(me, None)

    def wait(
        self,
        timeout: float | None,
        attempt: Callable[[float | None], bool],
        is_stuck: Callable[[], bool],
        *,
        patience_ns: int | None = None,
        loop: Released | None = None,
    ) -> bool:
        """Wait until the condition of `attempt` is true; return False if the timeout came first. `loop`: an event loop
        waits, and its wait also ends when a point is released that one of its tasks waits for.
        """
        me = _thread.get_ident()
        # A wait inside an `attempt` of this thread is a part of that attempt, and must be real.
        if self.is_real or me in self.waits.now:
            return attempt(timeout)
        wait = ThreadWait(
            None if timeout is None else self._deadline(timeout), is_stuck, None, loop
        )
        handled = sys.exc_info()[1]
        self.waits.enter(me, wait)
        try:
            if timeout is None and wait.first() is None:
                return self._block(wait, attempt)
            if patience_ns is None:
                patience_ns = max(_LONGEST_STAND_NS, int((timeout or 0) * 1e9))
            return self._poll(wait, attempt, clock.mono_ns() + patience_ns)
        except BaseException as error:
            interrupts.strip_if_interrupt(error, handled)
            raise error  # noqa: TRY201  3.10 would restore the stripped frames
        finally:
            self.waits.enter(me, None)

    def _block(self, wait: ThreadWait, attempt: Callable[[float | None], bool]) -> bool:
        """Wait without a timeout, but stop the replay if nothing can end the wait."""
        if self.on_stall is None:
            return attempt(None)
        while not attempt(_LOOK_AGAIN_S):
            if self.is_real:
                return attempt(None)
            if wait.is_released():
                return False
            # Since then another thread may have made a task wait at a place; or Ctrl-C is the only event left.
            if wait.first() is not None or (self.order and self.order.table.awaits_signal):
                self._jump()
            seconds = self.stall_s
            if seconds > _DIVERGED_STALL_S and self.has_diverged():
                seconds = _DIVERGED_STALL_S
            if self.waits.is_stalled(seconds, self._has_come):
                self.on_stall(seconds)
        return True

    def _skip(self, ns: int | None) -> bool:
        """Advance the clock at once if there is no other thread and no child. `wait` would do the same, more slowly;
        most programs have no other thread or child when they wait.
        """
        if (
            ns is None
            or self.waits.now
            or len(_current_frames()) != 1
            or threading._limbo  # type: ignore[attr-defined]  # noqa: SLF001  see `is_one_starting`
            or not self.waits.strangers.are_none()
        ):
            return False
        until = self._now + ns
        if until > self._furthest or (self.end_ns is not None and until > self.end_ns):
            return False
        # No guard: there is no other thread.
        self._now = until + _BEYOND_NS
        self._looked = clock.mono_ns()
        return True

    def start_anew(self) -> None:
        """Forget the other threads: a forked child does not have them."""
        self._guard = RawGuard()
        self.waits.start_anew()

    def _deadline(self, timeout: float) -> int:
        # The clock stands still while the program computes. A lane that has made a call since then is ahead of it.
        return max(self.now_ns(), lanes.current.get().reached_ns) + math.ceil(timeout * 1e9)

    def _poll(
        self, wait: ThreadWait, attempt: Callable[[float | None], bool], patience_ns: int
    ) -> bool:
        nap, used = _SHORTEST_NAP, 0
        while True:
            if attempt(0):
                return True
            if wait.is_released() or self._has_come(wait) or clock.mono_ns() >= patience_ns:
                return False
            if self._jump():
                if self._is_heartbeat() and attempt(_HOLDING_NAP):
                    return True
                continue
            if attempt(nap):
                return True
            # Not before the first nap: reading the CPU time costs as much as a jump, and most waits end there.
            if used:
                self.waits.strangers.count_look(used)
            nap, used = min(nap * 2, _LONGEST_NAP), clock.thread_cpu_ns()
            if self.order is not None and self.order.signals.holds:
                nap = _HOLDING_NAP

    def _is_heartbeat(self) -> bool:
        """Return whether only timeouts pass in this process, which waits for requests of its parent: the server of a
        `multiprocessing` manager wakes every second. At full speed it would use a processor for ever, and the parent
        waits until it uses none.
        """
        return self._beats > _MOST_BEATS and "/" in lanes.MAIN.name

    def _has_come(self, wait: ThreadWait) -> bool:
        return wait.deadline is not None and self.now_ns() >= wait.deadline

    def _jump(self) -> bool:
        """Set the time to the nearest deadline, if no thread and no child can do anything before it."""
        changes = self.waits.changes
        if self.is_real or not self.waits.all_wait(self._has_come):
            return False
        if self.order is not None and self.order.signals.is_in_flight:
            return False
        waits = list(self.waits.now.values())
        deadlines = [one.deadline for one in waits if one.deadline is not None]
        if changes != self.waits.changes:
            return False
        if self.order is not None and self._release(waits, min(deadlines, default=None), changes):
            return True
        if not deadlines:
            return False
        nearest = min(deadlines)
        if self.order is not None and self.order.signals.is_holding(nearest):
            return False
        if self.on_end is not None and self.end_ns is not None and nearest > self.end_ns:
            if self.is_ended_by_script():
                return False
            self.on_end()
        if nearest > self._furthest:
            return False
        with self._guard:
            if changes == self.waits.changes:
                self._beats += 1
                self._now = max(self._now, nearest + _BEYOND_NS)
                self._looked = clock.mono_ns()
        return True

    def _release(self, waits: list[ThreadWait], nearest: int | None, changes: int) -> bool:
        """Release the earliest point that a lane waits for; False: there is none, or a deadline that is
        not on the tape comes before it.
        """
        found = [(place, one) for one in waits if (place := one.first()) is not None]
        if self.order is not None and (due := self.order.signals.ahead()) is not None:
            first = min((place.rank for place, _ in found), default=due.rank)
            if due.rank <= first and (nearest is None or due.ns <= nearest):
                if self.order.signals.is_held(due):
                    return False
                with self._guard:
                    if changes != self.waits.changes:
                        return False
                    self.waits.changes += 1
                    self.order.signals.deliver(due)
                self.order.report_skip()
                return True
        if not found or self.order is None:
            if self.order is not None and self.order.interrupt(nearest, changes):
                return True
            return nearest is None and any(
                one.loop.release_late() for one in waits if one.loop is not None
            )
        place, wait = min(found, key=lambda one: one[0].rank)
        if nearest is not None and nearest < place.ns:
            return False
        with self._guard:
            # Another thread may have released it since the check.
            if changes != self.waits.changes or wait.first() is not place:
                return False
            self.waits.changes += 1
            # A thread that waits for a lock only guesses that its next point is under the lock. If that guess blocks
            # every thread, the thread gets its lock, and no point is skipped because of the guess.
            if wait.gate is None or not wait.gate.is_before:
                self.follow(place.ns)
                acts = None if wait.gate is None else wait.gate.acts
                if wait.gate is not None and wait.gate.in_loop:
                    # The threads that should come first may wait for the next action of this loop.
                    self.order.pass_by(place, acts)
                else:
                    self.order.skip_to(place, acts)
            wait.release(place)
        self.order.report_skip()
        return True


def _place_of(ns: int) -> Place | None:
    return getattr(ns, "place", None)


def _nap(seconds: float | None) -> bool:
    if seconds:
        clock.sleep(seconds)
    return False


def _always() -> bool:
    return True


def _never() -> bool:
    return False


_active: VirtualTime | None = None


def active() -> VirtualTime | None:
    """Return the time that waits are measured by. None means real time."""
    return _active


def begin(time: VirtualTime) -> None:
    """Measure waits by this time from now on."""
    global _active  # noqa: PLW0603  one slot a process
    _active = time
    time.drives = True
    pacing.begin(time)


def end(time: VirtualTime) -> None:
    global _active  # noqa: PLW0603  one slot a process
    pacing.end(time)
    time.drives = False
    if _active is time:
        _active = None


_alive: weakref.WeakSet[VirtualTime] = weakref.WeakSet()


def _start_anew() -> None:
    for time in list(_alive):
        time.start_anew()


os.register_at_fork(after_in_child=_start_anew)

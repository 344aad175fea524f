"""The playhead: the position of a replay on its tape. Releases points in the order of the tape.

A lane that comes to a point waits there. When every lane waits, the point that is earliest on the tape is
released, the replay's time moves to the time of that point, and the lane continues until it waits again.
A point to which no lane comes is skipped by that rule: the program has changed.

Tasks of an event loop do not block its thread. Their points are pending in the state of the loop, and
the loop's thread waits for all of them at once, in its selector. Points that were taken in the same
iteration of a loop are released in the same iteration. While a loop is busy (it has callbacks to run), a
point is released in the iteration, counted from the point before it, in which it was taken.

Knows places, lanes that wait, and loops; not asyncio (`hooks/order`), nor when every lane waits (`time`).
"""

from __future__ import annotations

import _thread
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from playhead import clock
from playhead.recording import lanes, order_slot
from playhead.replay.loop_points import LoopState
from playhead.replay.print_order import ReplayedPrints
from playhead.replay.signal_points import SignalPoints, interrupt_main_thread

if TYPE_CHECKING:
    from playhead.recording.recorder import Recorder
    from playhead.replay.points_table import Place, PointsTable
    from playhead.replay.time.virtual_time import VirtualTime

# The unhooked C methods of locks: a replay hooks these methods for the program.
_allocate_lock = _thread.allocate_lock
_acquire = type(_allocate_lock()).acquire
_release = type(_allocate_lock()).release
_INSTANT_NS = 50_000_000
_MOST_BETWEEN = 64
# A thread acts at once, unless the machine is busy.
_LONGEST_ACT_NS = 500_000_000
_NAP_S = 0.000_05
_take, _give = _thread.RLock.acquire, _thread.RLock.release


class Gate:
    """A thread that waits at a place."""

    __slots__ = ("_lock", "acts", "in_loop", "is_before", "is_open", "place")

    def __init__(
        self,
        place: Place,
        *,
        is_before: bool = False,
        in_loop: bool = False,
        acts: int | None = None,
    ) -> None:
        """`is_before`: the thread has yet to act before it comes to the place. `in_loop`: it is the thread of an event
        loop. `acts`: the thread that acts as soon as the gate is open: see `arrive`.
        """
        self.acts = acts
        self.place = place
        self.is_before = is_before
        self.in_loop = in_loop
        self.is_open = False
        self._lock = _allocate_lock()
        _acquire(self._lock)

    def open(self) -> None:
        """Open the gate. May be called twice: by the replay, and by the event that the thread waits for."""
        self.is_open = True
        with suppress(RuntimeError):  # it is open already
            _release(self._lock)

    def attempt(self, seconds: float | None) -> bool:
        """Wait up to `seconds` for the gate to open; return whether it is open."""
        if self.is_open:
            return True
        if seconds is None:
            return _acquire(self._lock)
        return _acquire(self._lock, True, seconds) if seconds else _acquire(self._lock, False)

    def is_stuck(self) -> bool:
        return not self.is_open

    def first(self) -> Place | None:
        return None if self.is_open else self.place


class Playhead:
    """Keeps the order of one tape in one process."""

    def __init__(self, table: PointsTable, time: VirtualTime) -> None:
        self.table = table
        self.time = time
        self._next: dict[str, int] = dict.fromkeys(table.segments, 0)
        self._guard = _thread.RLock()
        # The thread that has passed a point and has not yet performed its action: see `arrive`.
        self._acting: int | None = None
        # The count of waits when the program was interrupted: see `interrupt`.
        self._interrupted_at = -1
        self.signals = SignalPoints(self, Gate)
        # The first point that was skipped because no lane came to it.
        self.first_skipped: Place | None = None
        # Called once, with that point.
        self.on_skip: Callable[[Place], None] | None = None

    def make_state(
        self,
        wake: Callable[[], None],
        make_future: Callable[[], Any],
        place_last: Callable[[int], None] | None = None,
        arrange: Callable[[Any, int, list[str] | None, int], int] | None = None,
    ) -> LoopState:
        return LoopState(self, wake, make_future, place_last, arrange)

    def share_output(self, recorder: Recorder) -> ReplayedPrints | None:
        """Return the turns in which this process prints, if several processes of the recorded program printed."""
        if not self.table.prints:
            return None
        made = ReplayedPrints(recorder, self.table.prints)
        made.join()
        self.time.waits.strangers.prints = made
        return made

    async def arrive_async(self, moment: Any) -> bool:
        """Make a task wait at a moment of a call. Return False if the tape does not know its place."""
        state = order_slot.loop_here()
        if state is None or moment.place is None:
            return False
        try:
            await state.wait(moment.place)
        except GeneratorExit:
            raise  # a coroutine that is being closed must not wait
        except BaseException:
            await state.leave(moment)
            raise
        return True

    async def abandon(self, moment: Any) -> bool:
        """Make a task wait at a call that the program left on the tape. Return False if the place is not known."""
        state = order_slot.loop_here()
        if state is None or moment.left is None:
            return False
        await state.wait_to_be_left(moment)
        return True

    async def take_async(self, lane: Any, kind: str) -> None:
        """Make a task wait at the next point of that kind in its lane."""
        place, state = self.take(lane, kind), order_slot.loop_here()
        if place is not None and state is not None:
            await state.wait(place)

    def take(self, lane: Any, kind: str) -> Place | None:
        """Return the place of the next point of that kind in this lane; None if the tape has none."""
        return self.table.lane(lane.name, kind, lane.count(kind))

    def is_next(self, place: Place) -> bool:
        """Return whether every point before this one has passed."""
        return place.index == self._next[place.segment]

    def time_before(self, place: Place) -> int:
        """Return the nanoseconds between the previous point and this one."""
        before = self.table.segments[place.segment][max(0, place.index - 1)]
        return max(0, place.ns - before.ns)

    def is_now(self, place: Place) -> bool:
        """Return whether every point before this one has passed, and the remaining time is too short for a timeout to
        fire: timeouts that are not on the tape fire by the clock.
        """
        return self.is_next(place) and place.ns - self.time.now_ns() < _INSTANT_NS

    def waits_for_others(self, place: Place) -> bool:
        """Return whether all points that must come before this one belong to other threads than the loop of
        this one.
        """
        order = self.table.segments[place.segment]
        before = order[self._next[place.segment] : place.index]
        return bool(before) and all(one.passed or one.loop != place.loop for one in before)

    def arrive(self, place: Place, state: LoopState | None = None, *, acts: bool = False) -> None:
        """Make a thread wait at this place until it is released. `state`: it is the thread of an event loop that runs a
        task. `acts`: the thread then performs the action of the point: it writes, or takes an item from a queue. Until
        `acted`, or until it waits, no other thread passes a point, because that thread could act first.
        """
        thread = _thread.get_ident() if acts else None
        if place.passed:
            self.time.follow(place.ns)
            return
        if self.is_now(place):
            self.time.follow(place.ns)
            self.pass_by(place, thread)
        elif state is not None and (first := state.first()) is not None and first.rank < place.rank:
            # Another task of this loop would have to come first, and cannot while this one waits.
            self.pass_by(place, thread)
        else:
            self.time.wait_at(Gate(place, in_loop=state is not None, acts=thread))
        if state is not None:
            state.passed(place)

    def block_loop(self, place: Place) -> None:
        """Block the loop of this thread at this place, in its turn, until other threads have come to their places."""
        if not place.passed and not self.is_now(place):
            self.time.wait_at(Gate(place, in_loop=True))
        if not place.passed:
            self.time.follow(place.ns)
            self.pass_by(place)

    def ahead(self, lane: str) -> Place | None:
        """Return the next point of this lane."""
        return self.table.ahead(lane)

    def is_near(self, place: Place) -> bool:
        """Return whether every point of the same loop that must come before this one is of the same turn or of the turn
        before: then the loop is about to come to this place.
        """
        order = self.table.segments[place.segment]
        before = order[self._next[place.segment] : place.index]
        return all(
            one.passed or one.loop != place.loop or one.turn >= place.turn - 1 for one in before
        )

    def are_neighbours(self, one: Place, other: Place) -> bool:
        """Return whether both are points of calls, and the loop comes to no other point between them."""
        if type(one.what[0]) is not int or type(other.what[0]) is not int:
            return False
        between = self.table.segments[other.segment][one.index + 1 : other.index]
        return one.index < other.index and all(
            place.passed or place.loop != other.loop for place in between
        )

    def first_late(self, place: Place, here: list[Place]) -> Place | None:
        """Return the first point of a call in the turn of this place to which no task has come yet. `here` are the
        places of this turn for which tasks wait.
        """
        for one in self.table.segments[place.segment][place.index + 1 :]:
            if one.loop == place.loop and one.turn != place.turn:
                return None
            is_call = type(one.what[0]) is int and one.is_in_turn_of(place)
            if is_call and not one.passed and one not in here and not _follows(one, here):
                return one
        return None

    def interrupt(self, nearest: int | None, changes: int) -> bool:
        """Interrupt the program if Ctrl-C interrupted the recorded one here. Called when every thread waits, and none
        for a place of the tape. Return False if Ctrl-C did not, or if a deadline (`nearest`) comes first. `changes`
        counts the waits that begin and end.
        """
        place = self.table.interrupt(lanes.MAIN.name)
        if place is None or (nearest is not None and nearest < place.ns):
            # The main thread may not have left its wait yet.
            return self._interrupted_at == changes
        self.time.follow(place.ns)
        self._interrupted_at = changes
        self.pass_by(place)
        interrupt_main_thread(signal.SIGINT)
        return True

    def gate_before(self, place: Place) -> Gate:
        """Return a gate for the thread of an event loop that waits for another thread to come to this place. If all
        threads wait, the gate opens, and the place does not pass.
        """
        return Gate(place, is_before=True, in_loop=True)

    def await_turn(self, place: Place) -> None:
        """Wait until this is the next point of the tape, without passing it."""
        if not place.passed and not self.is_next(place):
            self.time.wait_at(Gate(place, is_before=True))

    def note(self, place: Place, state: LoopState | None) -> None:
        """Note a point in the thread of an event loop, where nothing may wait."""
        if not place.passed:
            self.time.follow(place.ns)
            self.pass_by(place)
            if state is not None:
                state.passed(place)

    def pass_by(self, place: Place, acts: int | None = None) -> None:
        """Mark this place as passed. `acts`: the thread that acts now (see `arrive`).

        Further points of the same call that follow at once pass with it: nothing can come between, and a client that
        has the whole answer does not ask for its end.
        """
        self._await_action()
        _take(self._guard)
        try:
            # Set before the place has passed: another thread may pass its own place right after it.
            self._acting = acts
            place.passed = True
            order, at = self.table.segments[place.segment], self._next[place.segment]
            for following in order[place.index + 1 : place.index + _MOST_BETWEEN]:
                if _is_same_answer(following, place):
                    following.passed = True
                elif following.loop == place.loop:
                    break  # points of other threads may lie between
            while at < len(order) and order[at].passed:
                at += 1
            self._next[place.segment] = at
        finally:
            _give(self._guard)

    def acted(self) -> None:
        """Note that this thread has performed the action of its last point."""
        if self._acting == _thread.get_ident():
            self._acting = None

    def _await_action(self) -> None:
        acting = self._acting
        if acting is None or acting == _thread.get_ident():
            return
        until = clock.mono_ns() + _LONGEST_ACT_NS
        while (
            self._acting == acting
            and not self.time.waits.is_waiting(acting)
            and acting in clock.frames()
            and clock.mono_ns() < until
        ):
            clock.sleep(_NAP_S)
        if self._acting == acting:
            self._acting = None

    def skip_to(self, place: Place, acts: int | None = None) -> None:
        """Skip all points before this one and pass it. Called when every lane waits and this is the earliest point that
        a lane waits for: no lane will come to the points before it.
        """
        _take(self._guard)
        try:
            order = self.table.segments[place.segment]
            for at in range(self._next[place.segment], place.index):
                if not order[at].passed:
                    order[at].passed = True
                    self.first_skipped = self.first_skipped or order[at]
            self._next[place.segment] = max(self._next[place.segment], place.index)
        finally:
            _give(self._guard)
        self.pass_by(place, acts)

    def report_skip(self) -> None:
        """Report the first skipped point, once. Never called under a lock: the report is written to disk."""
        if self.first_skipped is not None and self.on_skip is not None:
            report, self.on_skip = self.on_skip, None
            report(self.first_skipped)


def _follows(place: Place, here: list[Place]) -> bool:
    """Return whether this is a further point of a call of one of these places, which passes with it."""
    return any(_is_same_answer(place, one) for one in here)


def _is_same_answer(one: Place, other: Place) -> bool:
    return (
        type(one.what[0]) is int
        and one.what[0] == other.what[0]
        and (one.loop, one.turn) == (other.loop, other.turn)
    )

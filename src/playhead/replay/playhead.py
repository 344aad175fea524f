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
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from playhead.recording import order_slot

if TYPE_CHECKING:
    from playhead.replay.points_table import Place, PointsTable
    from playhead.replay.time.virtual_time import VirtualTime

# Methods of locks as C has them: a replay hooks these methods for the program.
_allocate_lock = _thread.allocate_lock
_acquire = type(_allocate_lock()).acquire
_release = type(_allocate_lock()).release
_NEVER = float("inf")
_INSTANT_NS = 50_000_000
_MOST_BETWEEN = 64
_take, _give = _thread.RLock.acquire, _thread.RLock.release


class Gate:
    """A thread that waits at a place."""

    __slots__ = ("_lock", "in_loop", "is_before", "is_open", "place")

    def __init__(self, place: Place, *, is_before: bool = False, in_loop: bool = False) -> None:
        """`is_before`: the thread is to come to the place next, and does something before it. `in_loop`: it is
        the thread of an event loop.
        """
        self.place = place
        self.is_before = is_before
        self.in_loop = in_loop
        self.is_open = False
        self._lock = _allocate_lock()
        _acquire(self._lock)

    def open(self) -> None:
        self.is_open = True
        _release(self._lock)

    def attempt(self, seconds: float | None) -> bool:
        """Wait so long for the gate to open; whether it is open."""
        if self.is_open:
            return True
        if seconds is None:
            return _acquire(self._lock)
        return _acquire(self._lock, True, seconds) if seconds else _acquire(self._lock, False)

    def is_stuck(self) -> bool:
        return not self.is_open

    def first(self) -> Place | None:
        return None if self.is_open else self.place


class Pending:
    """A task, a timer or a callback that waits at a place, and how to run it on."""

    __slots__ = ("is_dead", "place", "run")

    def __init__(self, place: Place, run: Callable[[], None], is_dead: Callable[[], bool]) -> None:
        self.place = place
        self.run = run
        self.is_dead = is_dead


class LoopState:
    """The points for which tasks of one event loop wait. `wake` interrupts its selector."""

    def __init__(
        self, head: Playhead, wake: Callable[[], None], make_future: Callable[[], Any]
    ) -> None:
        self._head = head
        self._wake = wake
        self._make_future = make_future
        self._thread = 0
        # Other threads add to it: see `call_soon_threadsafe`.
        self._pending: list[Pending] = []
        self._due: list[Pending] = []
        self._late: list[tuple[float, Pending]] = []
        self.turn = 0
        # The last point that was released here: its loop and turn on the tape, and the turn here. Before
        # the first one: the start of the loop (`enter_turn`).
        self._anchor = (0, 0, 0)

    def pend(self, place: Place, run: Callable[[], None], is_dead: Callable[[], bool]) -> Pending:
        made = Pending(place, run, is_dead)
        self._pending.append(made)
        return made

    async def wait(self, place: Place, *, is_cancelled: bool = False) -> None:
        """For a task: wait until the replay has come to this place. `is_cancelled`: the task is cancelled,
        and must wait all the same.
        """
        if place.passed or self.is_next(place):
            self._head.note(place, self)
            return
        if self._has_come(place) and self._head.waits_for_others(place):
            # The task did not stop here then: other threads came first while it ran.
            self._head.block_loop(place)
            self.passed(place)
            return
        future = self._make_future()
        pending = self.pend(place, lambda: future.set_result(None), future.done)
        try:
            # asyncio tells a task once that it is cancelled, trio tells it whenever it waits.
            await (future.shielded() if is_cancelled and hasattr(future, "shielded") else future)
        finally:
            self.drop(pending)

    async def wait_to_be_left(self, moment: Any) -> None:
        """For a task whose call was never answered: wait until the program leaves it, as it did then.
        Returns if the program does not.
        """
        future = self._make_future()
        self.pend_late(_NEVER, lambda: future.set_result(None), future.done)
        try:
            await future
        except BaseException:
            await self.leave(moment)
            raise

    async def leave(self, moment: Any) -> None:
        """The program leaves a call that it left on the tape, too. The client took its time to clean up
        then; the program learnt of it afterwards.
        """
        left = moment.left
        if left is not None and not left.passed:
            await self.wait(left, is_cancelled=True)

    def pend_late(self, when: float, run: Callable[[], None], is_dead: Callable[[], bool]) -> None:
        """For a timer that never fired on the tape: it fires when nothing else is left to happen."""
        self._late.append((when, Pending(None, run, is_dead)))  # type: ignore[arg-type]  # it has no place

    def drop(self, pending: Pending) -> None:
        if pending in self._pending:
            self._pending.remove(pending)

    def first(self) -> Place | None:
        """The earliest place that is waited for here."""
        if self._due:
            return None
        alive = [one for one in self._pending if not one.is_dead()]
        self._pending[:] = alive
        return min((one.place for one in alive), key=_rank, default=None)

    @property
    def is_due(self) -> bool:
        return bool(self._due)

    def is_next(self, place: Place) -> bool:
        """Whether the replay is at this place already: nothing comes before it, and its turn is now."""
        if not place.turn:
            return self._head.is_now(place)
        return self._head.is_next(place) and self._has_come(place)

    def passed(self, place: Place) -> None:
        """A point was taken in this turn."""
        self._anchor = (place.loop, place.turn, self.turn)

    def _has_come(self, place: Place) -> bool:
        loop, turn, at = self._anchor
        return place.loop == loop and self.turn - at >= place.turn - turn

    def enter_turn(self, thread: int, number: int) -> None:
        """`number`: of the loop, in the order in which the loops of the process began to run."""
        self._thread = thread
        if not self.turn and not self._anchor[0]:
            self._anchor = (number, 0, 0)
        self.turn += 1

    def look(self) -> None:
        """While the loop is busy: release what was released in this turn then."""
        place = self.first()
        if place is None or not self._has_come(place):
            return
        if self.is_next(place):
            self._head.time.follow(place.ns)
        elif self._head.waits_for_others(place):
            self._head.block_loop(place)
        else:
            return
        self.release(place)

    def release(self, place: Place) -> None:
        """Let the task that waits at this place continue, and those of the same turn."""
        group = [
            one for one in self._pending if one.place is place or _is_same_turn(one.place, place)
        ]
        group.sort(key=lambda one: one.place.rank)
        self._pending[:] = [one for one in self._pending if one not in group]
        for one in group:
            self._head.pass_by(one.place)
        self.passed(place)
        self._due += group
        if _thread.get_ident() != self._thread:
            self._wake()

    def release_late(self) -> bool:
        """Fire the earliest timer that never fired on the tape; False: there is none."""
        self._late = [one for one in self._late if not one[1].is_dead()]
        if not self._late:
            return False
        earliest = min(self._late, key=lambda one: one[0])
        self._late.remove(earliest)
        self._due.append(earliest[1])
        if _thread.get_ident() != self._thread:
            self._wake()
        return True

    def run_due(self) -> None:
        """In the loop's own thread: give what was released to the loop."""
        due, self._due = self._due, []
        # The anchor counts from the turn in which they run.
        if due and due[-1].place is not None:
            self.passed(due[-1].place)
        for one in due:
            if not one.is_dead():
                one.run()


class Playhead:
    """Keeps the order of one tape in one process."""

    def __init__(self, table: PointsTable, time: VirtualTime) -> None:
        self.table = table
        self.time = time
        self._next: dict[str, int] = dict.fromkeys(table.segments, 0)
        self._guard = _thread.RLock()
        # Points that were taken in another order than on the tape.
        self.overtaken: list[Place] = []

    def make_state(self, wake: Callable[[], None], make_future: Callable[[], Any]) -> LoopState:
        return LoopState(self, wake, make_future)

    async def arrive_async(self, moment: Any) -> bool:
        """A task has come to a moment of a call; False: the tape does not know its place."""
        state = order_slot.loop_here()
        if state is None or moment.place is None:
            return False
        try:
            await state.wait(moment.place)
        except BaseException:
            await state.leave(moment)
            raise
        return True

    async def abandon(self, moment: Any) -> bool:
        """A task has come to a call that the program left on the tape; False: the place is not known."""
        state = order_slot.loop_here()
        if state is None or moment.left is None:
            return False
        await state.wait_to_be_left(moment)
        return True

    async def take_async(self, lane: Any, kind: str) -> None:
        """A task has come to the next point of that kind in its lane."""
        place, state = self.take(lane, kind), order_slot.loop_here()
        if place is not None and state is not None:
            await state.wait(place)

    def take(self, lane: Any, kind: str) -> Place | None:
        """The place of the next point of that kind in this lane; None: the tape has none."""
        return self.table.lane(lane.name, kind, lane.count(kind))

    def is_next(self, place: Place) -> bool:
        """Whether every point before this one has passed."""
        return place.index == self._next[place.segment]

    def is_now(self, place: Place) -> bool:
        """Whether every point before this one has passed, and so little time lies between that no timeout
        can have set in: timeouts that are not on the tape fire by the clock.
        """
        return self.is_next(place) and place.ns - self.time.now_ns() < _INSTANT_NS

    def waits_for_others(self, place: Place) -> bool:
        """Whether every point that has to come before this one belongs to another thread than the loop that
        this one belongs to.
        """
        order = self.table.segments[place.segment]
        before = order[self._next[place.segment] : place.index]
        return bool(before) and all(one.passed or one.loop != place.loop for one in before)

    def arrive(self, place: Place, state: LoopState | None = None) -> None:
        """A thread has come to this place: wait until it is released. `state`: it is the thread of an
        event loop, of which a task runs.
        """
        if place.passed:
            self._late(place)
            self.time.follow(place.ns)
            return
        if self.is_now(place):
            self.time.follow(place.ns)
            self.pass_by(place)
        elif state is not None and (first := state.first()) is not None and first.rank < place.rank:
            # Another task of this loop would have to come first, and cannot while this one waits.
            self.pass_by(place)
        else:
            self.time.wait_at(Gate(place, in_loop=state is not None))
        if state is not None:
            state.passed(place)

    def block_loop(self, place: Place) -> None:
        """The loop of this thread has come to the turn of this place: let other threads come to theirs first."""
        if not place.passed and not self.is_now(place):
            self.time.wait_at(Gate(place, in_loop=True))
        if not place.passed:
            self.time.follow(place.ns)
            self.pass_by(place)

    def ahead(self, lane: str) -> Place | None:
        """The next point of this lane."""
        return self.table.ahead(lane)

    def await_turn(self, place: Place) -> None:
        """Wait until this is the next point of the tape, without passing it."""
        if not place.passed and not self.is_next(place):
            self.time.wait_at(Gate(place, is_before=True))

    def note(self, place: Place, state: LoopState | None) -> None:
        """A point was taken where nothing may wait: in the thread of an event loop."""
        if place.passed:
            self._late(place)
        else:
            self.time.follow(place.ns)
            self.pass_by(place)
            if state is not None:
                state.passed(place)

    def pass_by(self, place: Place) -> None:
        """The replay is at this place. Further points of the same call that follow at once pass with it:
        nothing can come between, and a client that has the whole answer does not ask for its end.
        """
        _take(self._guard)
        try:
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

    def skip_to(self, place: Place) -> None:
        """Every lane waits, and this is the earliest point that one waits for: no lane comes to the points
        before it.
        """
        _take(self._guard)
        try:
            order = self.table.segments[place.segment]
            for at in range(self._next[place.segment], place.index):
                if not order[at].passed:
                    order[at].passed = order[at].skipped = True
            self._next[place.segment] = max(self._next[place.segment], place.index)
        finally:
            _give(self._guard)
        self.pass_by(place)

    def _late(self, place: Place) -> None:
        if place.skipped:
            place.skipped = False
            self.overtaken.append(place)


def _rank(place: Place) -> int:
    return place.rank


def _is_same_answer(one: Place, other: Place) -> bool:
    return (
        type(one.what[0]) is int
        and one.what[0] == other.what[0]
        and (one.loop, one.turn) == (other.loop, other.turn)
    )


def _is_same_turn(one: Place, other: Place) -> bool:
    return bool(one.turn) and (one.segment, one.loop, one.turn) == (
        other.segment,
        other.loop,
        other.turn,
    )

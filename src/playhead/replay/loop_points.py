"""The points of one event loop in a replay: which tasks, timers and callbacks wait for which place of the tape.

Knows places and iterations of a loop; not asyncio (`hooks/order`), nor who releases the places (`playhead`).
"""

from __future__ import annotations

import _thread
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from playhead.replay import next_turn
from playhead.replay.next_turn import NextTurn, Pending, is_woken_before

if TYPE_CHECKING:
    from playhead.replay.playhead import Gate, Playhead
    from playhead.replay.points_table import Place

_NEVER = float("inf")
# A cancelled task may still have to wait at its place. It may be cancelled again once for each turn up to the place,
# and this many times more.
_MOST_CANCELS = 16


class LoopState:
    """The points for which tasks of one event loop wait. `wake` interrupts its selector. `place_last(n)` moves the last
    ready callback to position n. `arrange` moves a task: see `NextTurn`.
    """

    def __init__(
        self,
        head: Playhead,
        wake: Callable[[], None],
        make_future: Callable[[], Any],
        place_last: Callable[[int], None] | None = None,
        arrange: Callable[[Any, int, list[str] | None, int], int] | None = None,
    ) -> None:
        self._head = head
        self._wake = wake
        self._make_future = make_future
        self._place_last = place_last
        self._thread = 0
        # Other threads add to it: see `call_soon_threadsafe`.
        self._pending: list[Pending] = []
        self._due: list[Pending] = []
        self._late: list[tuple[float, Pending]] = []
        self.turn = 0
        # The last point with a turn that was released here: its loop and turn on the tape, and the turn in this replay.
        self._anchor = (0, 0, 0)
        # The process of the tape that this loop belongs to; empty before the first point.
        self._segment = ""
        # The number of callbacks from other threads that this loop has waited for, and the gate of the one that it
        # waits for now.
        self._awaited = 0
        self._gate: Gate | None = None
        self._next_turn = NextTurn(arrange)
        # Places of this turn that have passed, and whose tasks have not run yet.
        self._resuming: set[Place] = set()
        # The last callback that was moved: the turn, its place, and its position.
        self._moved: tuple[int, Place | None, int] = (0, None, 0)

    def pend(
        self,
        place: Place,
        run: Callable[[], None],
        is_dead: Callable[[], bool],
        call_soon: Callable[[Callable[[], bool]], None] | None = None,
    ) -> Pending:
        made = Pending(place, run, is_dead, call_soon)
        self._pending.append(made)
        self.come(place)
        return made

    def come(self, place: Place) -> None:
        """Note that the loop has received the callback that runs at this place."""
        place.has_come = True
        gate = self._gate
        if gate is not None and gate.place is place:
            gate.open()

    async def wait(self, place: Place, *, is_cancelled: bool = False) -> None:
        """Make a task wait until the replay has come to this place, also if it `is_cancelled`."""
        if place.passed or self.is_next(place):
            self._head.note(place, self)
            return
        if self._has_come(place) and self._head.waits_for_others(place):
            # In the recorded run the task did not stop here: other threads came first while it ran.
            self._head.block_loop(place)
            self.passed(place)
            return
        if self._is_in_next_turn(place) and hasattr(self._make_future(), "get_loop"):
            # In the recorded run the task did not wait for the world here, but let the other tasks run once. So it
            # keeps its place among the callbacks of the next turn.
            await next_turn.NextIteration()
            if next_turn.is_over(place) or self.take(place):
                return
        if is_cancelled and await self._yield_until(place):
            return
        patience = max(0, place.turn - self._anchor[1]) + _MOST_CANCELS
        while True:
            future = self._make_future()
            pending = self._pend_task(place, future)
            try:
                # asyncio cancels a task once, trio cancels it whenever it waits.
                is_shielded = is_cancelled and hasattr(future, "shielded")
                await (future.shielded() if is_shielded else future)
            except BaseException:
                # A scope of anyio cancels its tasks in each turn, and in the recorded run the client cleaned up in a
                # shielded scope. The patience is limited: a loop whose tasks are cancelled in each turn never waits.
                patience -= 1
                if not is_cancelled or patience <= 0 or not getattr(future, "cancelled", bool)():
                    raise
            finally:
                self.drop(pending)
                self._resuming.discard(place)
            # The place was released, the loop only woke the task to try it, or a scope cancelled the task once more.
            if next_turn.is_over(place) or self.take(place):
                return

    async def _yield_until(self, place: Place) -> bool:
        """Let a cancelled task of trio run in each turn until that of this place, as it did in the recorded run while
        its client cleaned up: so it keeps its position among the other tasks. Return whether it has passed the place.
        """
        yield_once = getattr(self._make_future(), "yield_once", None)
        patience = _MOST_CANCELS if place.turn and yield_once is not None else 0
        while patience and yield_once is not None and not self._has_come(place):
            patience -= 1
            await yield_once()
        return patience > 0 and (next_turn.is_over(place) or self.take(place))

    def _pend_task(self, place: Place, future: Any) -> Pending:
        def run() -> None:
            future.set_result(None)

        # The task checks, when it runs, whether its place has come.
        pending = self.pend(place, run, future.done, lambda _: run())
        if place.turn and hasattr(future, "get_loop"):
            pending.wake = lambda: future.get_loop().call_soon(next_turn.settle, future)
            pending.future = future
        return pending

    async def wait_to_be_left(self, moment: Any) -> None:
        """Make a task whose call was never answered wait until the program leaves the call, as it did in the recorded
        run. Returns if the program does not leave it.
        """
        future = self._make_future()
        self.pend_late(_NEVER, lambda: future.set_result(None), future.done)
        try:
            await future
        except BaseException as error:
            if type(error) is not GeneratorExit:  # see `Playhead.arrive_async`
                await self.leave(moment)
            raise

    async def leave(self, moment: Any) -> None:
        """Wait for the place at which the recorded program had left the call: the client cleans up before that."""
        left = moment.left
        if left is not None and not left.passed:
            await self.wait(left, is_cancelled=True)

    def pend_late(self, when: float, run: Callable[[], None], is_dead: Callable[[], bool]) -> None:
        """Register a timer that never fired on the tape: it fires when nothing else is left to happen."""
        self._late.append((when, Pending(None, run, is_dead)))  # type: ignore[arg-type]  # it has no place

    def drop(self, pending: Pending) -> None:
        if pending in self._pending:
            self._pending.remove(pending)

    def first(self) -> Place | None:
        """Return the earliest place that a task of this loop waits for."""
        if self._due:
            return None
        alive = [one for one in self._pending if not one.is_dead()]
        self._pending[:] = alive
        return min((one.place for one in alive), key=lambda place: place.rank, default=None)

    @property
    def is_due(self) -> bool:
        return bool(self._due)

    def is_next(self, place: Place) -> bool:
        """Return whether the replay is at this place already: nothing comes before it, and its turn is now."""
        if any(one.rank < place.rank for one in self._resuming):
            return False
        if not place.turn:
            return self._head.is_now(place)
        return self._head.is_next(place) and self._has_come(place)

    def passed(self, place: Place) -> None:
        """Note that a point was taken in this turn."""
        if place.turn:
            self._anchor = (place.loop, place.turn, self.turn)
        self._segment = place.segment
        if place.queued is not None and _thread.get_ident() == self._thread:
            self._next_turn.come_to(place)

    def _has_come(self, place: Place, turns: int = 0) -> bool:
        """Return whether the turn of this place is now, or in this many turns."""
        loop, turn, at = self._anchor
        return place.loop == loop and self.turn + turns - at >= place.turn - turn

    def _is_in_next_turn(self, place: Place) -> bool:
        return (
            bool(place.turn)
            and self._has_come(place, turns=1)
            and not self._has_come(place)
            and self._head.is_near(place)
        )

    def enter_turn(self, thread: int, number: int) -> None:
        """Begin a turn. Loops have numbers in the order in which they began to run."""
        self._thread = thread
        if not self.turn and not self._anchor[0]:
            self._anchor = (number, 0, 0)
        self.turn += 1
        self._resuming.clear()
        self._next_turn.begin()

    def look(self, *, is_busy: bool) -> None:
        """Release, before a turn, the points that were released in this turn of the recorded run. `is_busy`: the loop
        has callbacks to run in this turn anyway.
        """
        self._next_turn.settle()
        self._await_callbacks()
        self._head.signals.deliver_in_turn(self._has_come)
        if is_busy:
            self._wake_for_next_turn()
        place = self.first()
        if place is not None and not place.turn and is_busy and self._head.is_next(place):
            # In the recorded run another thread came to this place while the loop was busy.
            self._head.time.follow(place.ns)
            self.release(place)
        if place is None or not self._has_come(place):
            return
        if self.is_next(place):
            self._head.time.follow(place.ns)
        elif self._head.waits_for_others(place):
            self._head.block_loop(place)
        else:
            if is_busy:
                self._try()
            return
        self.release(place)
        if self._pending:
            self._try()  # the rest of this turn, behind a task that is late

    def _await_callbacks(self) -> None:
        """Wait for the callbacks that other threads had given to the loop before this turn began. In a replay such a
        thread may still be on its way to `call_soon_threadsafe`: for example, it has just learnt that a process has
        ended, or has finished a job.
        """
        loop, turn, at = self._anchor
        first = self.first()
        if not self._segment and first is not None:
            self._segment = first.segment
        callbacks = self._head.table.callbacks(self._segment, loop)
        while self._awaited < len(callbacks):
            place = callbacks[self._awaited]
            if place.turn > turn + self.turn - at:
                return
            if first is not None and first.turn and first.turn < place.turn:
                return  # the turn of that place comes before
            self._awaited += 1
            # The gate is set before the check: the other thread opens it if it comes in between.
            gate = self._gate = self._head.gate_before(place)
            if not place.passed and not place.has_come:
                self._head.time.wait_at(gate)
            self._gate = None

    def _wake_for_next_turn(self, before: Place | None = None) -> None:
        """Wake the tasks whose points are in the next turn, by a callback in this one. `before`: only those that were
        woken before this place of this turn.

        In the recorded run the selector reported an answer in the turn before its task ran. The transport's callback
        that woke the task came behind the ready callbacks, and before the timers of that turn. Here another callback
        takes its position, so the task has its place among the callbacks of the next turn.
        """
        woken = [
            one
            for one in self._pending
            if one.wake is not None
            and self._is_in_next_turn(one.place)
            and not one.is_dead()
            and (before is None or is_woken_before(one.place, before))
        ]
        for one in sorted(woken, key=lambda one: one.place.rank):
            self.drop(one)
            if one.wake is not None:
                one.wake()
                self._next_turn.add(one)

    def _try(self) -> None:
        """Check pending points again later in this turn. Ready tasks come to their points before the next point that is
        pending here. A callback of another thread stands among these tasks, and the results of the selector come behind
        them.
        """
        for one in sorted(self._pending, key=lambda one: one.place.rank):
            if one.call_soon is not None and not one.is_tried and self._has_come(one.place):
                one.is_tried = True
                one.call_soon(self._taker(one))
                self._move(one)

    def _taker(self, one: Pending) -> Callable[[], bool]:
        def take() -> bool:
            one.is_tried = False
            if one not in self._pending or one.is_dead() or not self.take(one.place):
                return False
            self.drop(one)
            return True

        return take

    def take(self, place: Place) -> bool:
        """Pass a place in the middle of a turn. Return False if a task of this loop must come to an earlier place
        first, in a later turn.
        """
        if self.is_next(place):
            self._head.note(place, self)
        elif self._has_come(place) and self._head.waits_for_others(place):
            self._head.block_loop(place)
            self.passed(place)
        else:
            return False
        return True

    def _move(self, one: Pending) -> None:
        """Move the callback that became ready last to its recorded position among the callbacks of its turn.

        Callbacks of a transport do not exist in a replay, but they count in the recorded positions of the answers that
        they carried. So an answer comes right behind the previous one, if no other task came to a point in between.
        """
        place: Place | None = one.place  # a timer that never fired has no place
        position = None if place is None else place.position
        if self._place_last is None or place is None or position is None or one.comes_last:
            return
        turn, before, at = self._moved
        if turn == self.turn and before is not None and self._head.are_neighbours(before, place):
            position = min(position, at + 1)
        self._moved = (self.turn, place, position)
        self._place_last(position)

    def release(self, place: Place) -> None:
        """Let the task that waits at this place continue, and the tasks of the same turn."""
        group = [
            one for one in self._pending if one.place is place or one.place.is_in_turn_of(place)
        ]
        group.sort(key=lambda one: one.place.rank)
        # A task whose answer has not arrived here yet comes to a place in between: it comes first, also if it is late.
        late = self._head.first_late(place, [one.place for one in group])
        group = [one for one in group if late is None or one.place.rank < late.rank]
        self._pending[:] = [one for one in self._pending if one not in group]
        for one in group:
            self._head.pass_by(one.place)
        self.passed(place)
        self._due += group
        if _thread.get_ident() != self._thread:
            self._wake()

    def release_late(self) -> bool:
        """Fire the earliest timer that never fired on the tape; return False if there is none."""
        self._late = [one for one in self._late if not one[1].is_dead()]
        if not self._late:
            return False
        earliest = min(self._late, key=lambda one: one[0])
        self._late.remove(earliest)
        self._due.append(earliest[1])
        if _thread.get_ident() != self._thread:
            self._wake()
        return True

    def run_reads(self) -> bool:
        """Deliver the released data, for a loop that polls after this. Return whether there was any."""
        reads = [one for one in self._due if one.comes_last]
        if reads:
            self._due = [one for one in self._due if not one.comes_last]
            self.passed(reads[-1].place)
        for one in reads:
            if not one.is_dead():
                one.run()
        return bool(reads)

    def run_due(self) -> None:
        """Pass the released tasks and timers to the loop, in its own thread."""
        due, self._due = self._due, []
        # The anchor counts from the turn in which they run.
        has_place = bool(due) and due[-1].place is not None
        if has_place:
            self.passed(due[-1].place)
        for one in due:
            if has_place:
                self._wake_for_next_turn(one.place)
            if not one.is_dead():
                one.run()
                self._move(one)
                if one.future is not None:
                    self._resuming.add(one.place)
        if has_place:
            self._wake_for_next_turn()

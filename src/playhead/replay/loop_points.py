"""The points of one event loop in a replay: which tasks, timers and callbacks wait for which place of the tape.

Knows places and iterations of a loop; not asyncio (`hooks/order`), nor who releases the places (`playhead`).
"""

from __future__ import annotations

import _thread
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playhead.replay.playhead import Playhead
    from playhead.replay.points_table import Place

_NEVER = float("inf")


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


def _rank(place: Place) -> int:
    return place.rank


def _is_same_turn(one: Place, other: Place) -> bool:
    return bool(one.turn) and (one.segment, one.loop, one.turn) == (
        other.segment,
        other.loop,
        other.turn,
    )

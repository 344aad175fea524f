"""Order the tasks that become ready for the next turn of an event loop as they were ordered on the tape.

Callbacks inside a tool or a transport make tasks ready, and a replay does not run these callbacks. So the tape says for
each point of a call how many callbacks the loop had already scheduled for its next turn. Knows places; does not know
when they are released (`loop_points`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from playhead.host.loop_frames import place_in_turn
from playhead.recording import lanes, order_slot

if TYPE_CHECKING:
    from playhead.replay.points_table import Place


class Pending:
    """A task, a timer or a callback that waits at a place, and the functions that resume it."""

    __slots__ = ("call_soon", "comes_last", "future", "is_dead", "is_tried", "place", "run", "wake")

    def __init__(
        self,
        place: Place,
        run: Callable[[], None],
        is_dead: Callable[[], bool],
        call_soon: Callable[[Callable[[], bool]], None] | None = None,
    ) -> None:
        """`run` makes the loop run it in the turn that begins. `call_soon` does the same if the function that it gets
        returns True when its turn has come: see `loop_points.LoopState._try`.
        """
        self.place = place
        self.run = run
        self.is_dead = is_dead
        self.call_soon = call_soon
        self.is_tried = False
        # Whether a selector reported it: then it comes behind the callbacks that are ready.
        self.comes_last = False
        # For a task: the function that wakes it (see `LoopState._wake_for_next_turn`), and the future that it waits
        # for.
        self.wake: Callable[[], object] | None = None
        self.future: Any = None


class NextTurn:
    """The tasks that were woken in this turn of a loop and run in the next. `arrange` moves such a task among the ready
    callbacks: see `hooks/order/ready_order`.
    """

    def __init__(self, arrange: Callable[[Any, int, list[str] | None, int], int] | None) -> None:
        self._arrange = arrange
        self._woken: list[Pending] = []
        # Tasks of this turn that were woken in the turn before.
        self._arriving: list[Pending] = []
        # For each point of this turn: how many callbacks the loop had scheduled for its next turn in the recorded run,
        # and how many of them a replay does not have.
        self._hidden: list[tuple[int, int]] = []

    def begin(self) -> None:
        """Begin a turn."""
        self._arriving, self._woken = self._woken, []

    def add(self, one: Pending) -> None:
        """Add a task that a callback of this turn wakes."""
        self._woken.append(one)

    def come_to(self, place: Place) -> None:
        """Note that a task of this turn has come to this place. Its next actions make other tasks ready for the next
        turn, so the tasks that were ready before those on the tape are made ready now.
        """
        here = place_in_turn()
        if here is None or place.queued is None:
            return
        queued = here.queued
        for one in self._woken:
            if is_woken_before(one.place, place) and not one.is_dead():
                one.run()
                queued += 1
        self._hidden.append((place.queued, max(0, place.queued - queued)))

    def settle(self) -> None:
        """Move the tasks that were woken for the coming turn to their recorded positions among its callbacks, if they
        come too late. The positions of the tape include callbacks that a replay does not have. So a task gets at most
        its position minus the callbacks that are known to be missing before it. The names of the callbacks that
        followed it on the tape are more exact, because a replay has the same ones.
        """
        arriving, self._arriving = self._arriving, []
        hidden, self._hidden = self._hidden, []
        if self._arrange is None:
            return
        floor = 0
        for one in sorted(arriving, key=lambda one: one.place.rank):
            position = one.place.position
            if position is not None:
                missing = max((less for queued, less in hidden if queued <= position), default=0)
                floor = 1 + self._arrange(one.future, position - missing, one.place.behind, floor)


def is_woken_before(one: Place, other: Place) -> bool:
    """Return whether the task that comes to the first place in the next turn was ready before the second place in this
    turn. If the tape does not say, it was: answers come before the timers of a turn.
    """
    if other.queued is None or one.position is None:
        return True
    return one.position < other.queued


class NextIteration:
    """Awaited by a task of asyncio: the task runs again in the next turn, as after `asyncio.sleep(0)`."""

    def __await__(self) -> Generator[None, None, None]:
        token = order_slot.between_turns.set(True)
        try:
            yield
        finally:
            lanes.reset(order_slot.between_turns, token)


def settle(future: Any) -> None:
    if not future.done():
        future.set_result(None)


def is_over(place: Place) -> bool:
    return place.passed

"""Signals of the tape: a replay delivers each at the place where the program's handler ran.

A handler runs in the main thread, between two of its points. So the signal is delivered while the main thread waits,
when every point before it has passed. Three things happen without a point: the program prints, it makes a call, it
computes. The first two are steps, which are counted; the tape has the number of steps before each signal. For a main
thread that computes without a step, a thread of ours sends the signal after as much processor time as it took then.

Signals that the program sends to itself, and timers that send one, are not sent in a replay: the tape has them.
Knows places and steps; not how handlers are hooked (`hooks/input/signals`).
"""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

from playhead import clock
from playhead.recording import lanes, order_slot, points

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.recording.lanes import Lane
    from playhead.replay.playhead import Gate, Playhead
    from playhead.replay.points_table import Place

    Taken = tuple[Lane, str, int]

# Signals with which a person or a supervisor ends a replay: they are never held back.
_FROM_OUTSIDE = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
# The original: a replay hooks this function for the program.
_kill_thread = getattr(signal.pthread_kill, "__wrapped__", signal.pthread_kill)
_LOOK_S = 0.02
# A main thread that computes for less time may be on its way to a wait: it imports, for example.
_SHORTEST_NS = 300_000_000
# A main thread that neither waits nor computes for this long is in an unknown wait. A main thread that computes gets
# more time, because a busy machine takes longer for the same work.
_LONGEST_STAND_NS = 2_000_000_000
_SLOWEST = 4


class SignalPoints:
    """The signals of one tape, for one process."""

    def __init__(self, head: Playhead, make_gate: Callable[[Place], Gate]) -> None:
        self._head = head
        self._make_gate = make_gate
        # The signal that was sent to the main thread, which has not handled it yet.
        self._sent: Place | None = None
        # The gate at which the main thread waits for the next signal: see `_await`.
        self._gate: Gate | None = None
        # When the timer of the program would fire, by the clock of the tape, and its interval after that.
        self._timer: tuple[int | None, float] = (None, 0.0)
        self._watched = False
        # The point that the main thread waits for, by lane, kind and number: see `begin_wait`.
        self._taken: Taken | None = None

    def begin_wait(self, lane: Lane, kind: str, place: Place) -> Taken | None:
        """Note that the main thread begins to wait for a point with a number. A handler that runs before the point
        gives the number back.
        """
        if not _in_main_thread():
            return None
        self._taken = (lane, kind, place.what[2])
        return self._taken

    def end_wait(self, taken: Taken | None) -> bool:
        """Return whether a handler ran during this wait, so that the point is to be taken again."""
        if taken is None:
            return False
        was_handled = self._taken is not taken
        self._taken = None
        return was_handled

    def give_back(self, taken: Taken | None) -> None:
        """Give the number of the point back: the wait ended without its point."""
        if taken is not None and self._taken is taken:
            self._taken = None
            lane, kind, number = taken
            lane.give_back(kind, number)

    def ahead(self) -> Place | None:
        """Return the next signal that is to be delivered."""
        return self._head.table.signal(lanes.MAIN.name)

    @property
    def is_in_flight(self) -> bool:
        return self._sent is not None

    def deliver(self, place: Place) -> None:
        """Send the signal of this place to the main thread."""
        self._head.time.follow(place.ns)
        self._sent = place
        self._head.skip_to(place)
        interrupt_main_thread(_number(place))

    def handler_of(self, number: int, handler: Any) -> Any:
        """Return the function that handles a signal that has arrived in the main thread."""
        sent = self._sent
        if sent is None or _number(sent) != number:
            ahead = self.ahead()
            is_taped = ahead is not None and number not in _FROM_OUTSIDE
            return _ignore if is_taped and self._head.table.has_signal(number) else handler
        self._sent = None
        if sent.turn and (state := order_slot.loop_here()) is not None:
            state.passed(sent)  # the turns of the points that follow count from here
        gate, self._gate = self._gate, None
        if gate is not None:
            gate.open()
        # The main thread does not wait while it handles the signal.
        wait = self._head.time.leave()
        is_numbered = self._taken is not None
        self.give_back(self._taken)
        if handler is signal.default_int_handler or wait is None:
            return handler

        def handle(signalnum: int, frame: Any) -> Any:
            handler(signalnum, frame)
            self._head.time.return_to(wait)
            if is_numbered and wait.gate is not None:
                wait.gate.open()  # `order_slot.wait_for` takes the point again

        return handle

    def step(self, steps: int) -> None:
        """Deliver the signals that came before this step of the main thread in the recorded run."""
        while (place := self.ahead()) is not None and self._is_due(place, steps):
            if self._head.is_next(place):
                self.deliver(place)
                clock.sleep(0)  # the handler runs here at the latest
            elif order_slot.loop_here() is None:
                self._await(place)
            else:
                return  # the other tasks of the loop may have to come to their points first
            if self.ahead() is place:
                return

    def await_next(self) -> None:
        """Wait for the next signal, if there is one: the main thread has come to something that is not on the tape."""
        place = self.ahead()
        if place is not None and _in_main_thread() and order_slot.loop_here() is None:
            self._await(place)

    def send(self, number: int) -> bool:
        """Handle a signal that the program sends to itself. Return whether the tape delivers it, so that it must not be
        sent.
        """
        place = self.ahead()
        if place is None or not self._head.table.has_signal(number):
            return False
        if _in_main_thread() and _number(place) == number:
            self.deliver(place)
        return True

    def pause(self) -> bool:
        """Replacement for `signal.pause`: wait for the next signal. Return False if the tape has none."""
        place = self.ahead()
        if place is None or not _in_main_thread():
            return False
        self._await(place)
        return True

    def set_timer(self, seconds: float, interval: float) -> tuple[float, float]:
        """Replacement for `signal.setitimer`: returns the previous timer, too."""
        now = self._head.time.now_ns()
        at, every = self._timer
        left = 0.0 if at is None else max(0.0, (at - now) / 1e9)
        self._timer = (now + int(seconds * 1e9) if seconds else None, interval)
        return (left, every if left else 0.0)

    def watch(self) -> None:
        """Deliver signals to a main thread that computes, if the tape has any."""
        if not self._watched and self.ahead() is not None:
            self._watched = True
            _thread.start_new_thread(self._watch, ())

    def _await(self, place: Place) -> None:
        gate = self._gate = self._make_gate(place)
        self._head.time.wait_at(gate)
        self._gate = None

    def _is_due(self, place: Place, steps: int) -> bool:
        then = place.what[3]
        return type(then) is int and then <= steps and self._sent is None

    def _watch(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        main = threading.main_thread().ident or 0
        at, since, used = None, 0, 0
        while (place := self.ahead()) is not None:
            clock.sleep(_LOOK_S)
            if order_slot.active() is not self._head or sys.is_finalizing():
                return
            is_here = self._head.is_next(place) and not self._head.time.is_waiting(main)
            if not is_here or self._sent is not None or self.has_steps_left(place):
                at = None
                continue
            now, cpu = clock.mono_ns(), clock.cpu_of_thread_ns(main)
            if at is not place:
                at, since, used = place, now, cpu
                continue
            computes = cpu > used
            then = self._head.time_before(place)
            most = _LONGEST_STAND_NS + (_SLOWEST * then if computes else 0)
            if cpu - used >= max(_SHORTEST_NS, then) or now - since > most:
                self.deliver(place)

    def has_steps_left(self, place: Place) -> bool:
        """Return whether the main thread has steps to take before this signal."""
        then = place.what[3]
        return type(then) is int and then > points.steps


def interrupt_main_thread(number: int) -> None:
    """Send a signal to the main thread. Not with `raise_signal`: another thread may run this, and may have blocked the
    signal.
    """
    _kill_thread(threading.main_thread().ident or 0, number)


def _number(place: Place) -> int:
    return int(place.what[1].partition(":")[2])


def _in_main_thread() -> bool:
    return threading.main_thread().ident == _thread.get_ident()


def _ignore(signalnum: int, frame: Any) -> None:
    """Ignore a signal that arrived for real, because the tape delivers it."""

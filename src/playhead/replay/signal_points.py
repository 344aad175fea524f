"""Signals of the tape: a replay delivers each at the place where the program's handler ran.

A handler runs in the main thread, between two of its points. So the signal is delivered while the main thread waits,
when every point before it has passed. Three things happen without a point: the program prints, it makes a call, it
computes. The first two are steps, which are counted; the tape has the number of steps before each signal. For a main
thread that computes without a step, a thread of ours sends the signal after as much processor time as it took then.

Signals that the program sends to itself, and timers that send one, are not sent in a replay: the tape has them.

A supervisor that gets a signal (uvicorn with workers, gunicorn) passes it on to its workers, or a terminal sends it to
all of them. So a worker gets the signal of its tape only when the replay of its parent has come to the parent's
signal: a worker that ended earlier would be taken for dead. Parents announce their signals by a file in the folder of
the replay's tape.

A shell script sends a signal to a process in its background by `kill`, really, also in a replay. So such a process gets
the signal of its tape only when the real one has come, unless no process can send it (`script_parent`). A real one that
comes early waits for its place.
Knows places and steps; not how handlers are hooked (`hooks/input/signals`).
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

from playhead import clock
from playhead.recording import deck, lanes, order_slot, points
from playhead.replay.print_order import ReplayedPrints
from playhead.replay.time import script_parent

if TYPE_CHECKING:
    from collections.abc import Callable

    from playhead.recording.lanes import Lane
    from playhead.replay.playhead import Gate, Playhead
    from playhead.replay.points_table import Place

    Taken = tuple[Lane, str, int]

# Signals with which a person or a supervisor ends a replay: they are never held back.
_FROM_OUTSIDE = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
# Signals that scripts send by `kill`. Others come from timers, from children or from the terminal.
_OF_SCRIPTS = frozenset(
    {signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
)
# The original: a replay hooks this function for the program.
_kill_thread = getattr(signal.pthread_kill, "__wrapped__", signal.pthread_kill)
_LOOK_S = 0.02
# A main thread that computes for less time may be on its way to a wait: it imports, for example.
_SHORTEST_NS = 300_000_000
# A main thread that neither waits nor computes for this long is in an unknown wait. A main thread that computes gets
# more time, because a busy machine takes longer for the same work.
_LONGEST_STAND_NS = 2_000_000_000
_SLOWEST = 4
# A terminal sends Ctrl-C to all processes at once: the parent's handler may run a little later than the worker's.
_SAME_KEY_NS = 500_000_000
# How long a worker waits for its parent. The parent may have changed.
_LONGEST_HOLD_NS = 120_000_000_000
# A worker that waits for its parent uses no processor time: its parent waits for that.
_LOOK_HOLDING_S = 0.5


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
        # Whether the next signal waits for the parent process.
        self.holds = False
        # When this process began to wait for its parent's signal, by the real clock.
        self._held: dict[Place, int] = {}
        # Signals that the script around this process has sent, or the process itself, before their places.
        self._arrived: Counter[int] = Counter()

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
        self._pass(place)
        interrupt_main_thread(_number(place))

    def deliver_in_turn(self, has_come: Callable[[Place], bool]) -> None:
        """Deliver the signal whose handler ran in this turn of an event loop: a loop that is always busy never waits
        for its signal. `has_come` tells whether the turn of a place is now.
        """
        place = self.ahead()
        if place is None or not place.turn or self.is_in_flight:
            return
        if self.has_steps_left(place) or self.is_held(place):
            return
        if has_come(place) and self._head.is_next(place):
            self.deliver(place)

    def _pass(self, place: Place) -> None:
        self._head.time.follow(place.ns)
        self._arrived[_number(place)] = max(0, self._arrived[_number(place)] - 1)
        script_parent.go_on()
        self._sent = place
        self._head.skip_to(place)
        _announce(place)
        if isinstance(prints := order_slot.prints, ReplayedPrints):
            prints.signal_came()

    def is_held(self, place: Place) -> bool:
        """Return whether this signal has to wait for the signal of the parent process, or for other processes that
        printed before it.
        """
        prints = order_slot.prints
        before = self._signal_of_parent(place)
        self.holds = before is not None and not _is_announced(before)
        if self.holds:
            now = clock.mono_ns()
            if place not in self._held:
                if isinstance(prints, ReplayedPrints):
                    prints.hold()
                self._head.time.stall_s = max(self._head.time.stall_s, 2 * _LONGEST_HOLD_NS / 1e9)
            self.holds = now - self._held.setdefault(place, now) < _LONGEST_HOLD_NS
        else:
            # First, because it tells other processes of the script that this one waits: they may have to print first.
            self.holds = before is None and self._awaits_script(place)
            if not self.holds and isinstance(prints, ReplayedPrints):
                self.holds = prints.owes_before(place.ns)
        return self.holds

    def _awaits_script(self, place: Place) -> bool:
        """Return whether the script around this process has yet to send this signal."""
        number = _number(place)
        if number not in _OF_SCRIPTS or self._arrived[number]:
            return False
        is_awaited = script_parent.may_signal()
        if is_awaited:
            self._head.time.stall_s = max(self._head.time.stall_s, 2 * _LONGEST_HOLD_NS / 1e9)
        return is_awaited

    def _is_early(self, number: int) -> bool:
        """Return whether a signal has come from the script around this process, so that the tape delivers it at its
        place. A further one is not held back.
        """
        if number not in _OF_SCRIPTS or not script_parent.is_shell():
            return False
        if self._head.table.signals_left(lanes.MAIN.name, number) <= self._arrived[number]:
            return False
        self._arrived[number] += 1
        return True

    def is_holding(self, ns: int) -> bool:
        """Return whether a signal that came before this time waits for the signal of the parent process. Until then
        no timeout fires: a worker that waits in a loop must be idle, or its parent would wait for it.
        """
        place = self.ahead()
        return place is not None and place.ns <= ns and self.is_held(place)

    def _came_for_real(self, number: int) -> Place | None:
        """Return the place of a signal that the parent process has sent to this one."""
        place = self.ahead()
        if place is None or _number(place) != number:
            return None
        return None if self._signal_of_parent(place) is None else place

    def _signal_of_parent(self, place: Place) -> Place | None:
        """Return the signal that the parent process had handled by then. The Pythons of a script are not parents of
        each other, although the lane of the first encloses those of the others.
        """
        if script_parent.is_shell():
            return None
        return self._head.table.signal_of_parent(lanes.MAIN.name, place.ns + _SAME_KEY_NS)

    def handler_of(self, number: int, handler: Any) -> Any:
        """Return the function that handles a signal that has arrived in the main thread."""
        if self._sent is None and (place := self._came_for_real(number)) is not None:
            self._pass(place)
        sent = self._sent
        if sent is None or _number(sent) != number:
            if self._is_early(number):
                return _ignore
            if self._head.table.had_signal_of_parent(lanes.MAIN.name, number):
                return _ignore  # the tape has delivered it
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
        wait = self._head.time.waits.leave()
        is_numbered = self._taken is not None
        self.give_back(self._taken)
        while (following := self.ahead()) is not None and self._is_before_handler(following):
            # Its handler runs here, in the next instructions: before the first line of the one that is returned.
            self.deliver(following)
            clock.sleep(0)
        if handler is signal.default_int_handler or wait is None:
            return handler

        def handle(signalnum: int, frame: Any) -> Any:
            handler(signalnum, frame)
            self._head.time.waits.return_to(wait)
            if is_numbered and wait.gate is not None:
                wait.gate.open()  # `order_slot.wait_for` takes the point again

        return handle

    def step(self) -> None:
        """Deliver the signals that came before the next step of the main thread in the recorded run."""
        while (place := self.ahead()) is not None and self._is_due(place):
            if self._head.is_next(place) and not self.is_held(place):
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
        else:
            self._arrived[number] += 1
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

    def _is_due(self, place: Place) -> bool:
        then = _steps_before(place)
        return then is not None and then <= points.steps() and self._sent is None

    def _is_before_handler(self, place: Place) -> bool:
        """Return whether this signal arrived before the handler that runs next had begun."""
        detail = place.what[3]
        return isinstance(detail, list) and detail[1:] == [1] and self._is_due(place)

    def _watch(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        main = threading.main_thread().ident or 0
        at, since, used = None, 0, 0
        while (place := self.ahead()) is not None:
            clock.sleep(_LOOK_HOLDING_S if self.holds else _LOOK_S)
            if order_slot.active() is not self._head or sys.is_finalizing():
                return
            is_here = self._head.is_next(place) and not self._head.time.waits.is_waiting(main)
            is_busy = self._sent is not None or self.has_steps_left(place)
            if not is_here or is_busy or self.is_held(place):
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
        then = _steps_before(place)
        return then is not None and then > points.steps()


def _announce(place: Place) -> None:
    path = _announcement(place)
    if path is not None:
        with contextlib.suppress(OSError), open(path, "wb"):
            pass


def _is_announced(place: Place) -> bool:
    path = _announcement(place)
    return path is None or os.path.exists(path)


def _announcement(place: Place) -> str | None:
    open_deck = deck.active()
    folder = None if open_deck is None else open_deck.recorder.folder
    return None if folder is None else f"{folder}/.signal-{place.segment}-{place.index}"


def interrupt_main_thread(number: int) -> None:
    """Send a signal to the main thread. Not with `raise_signal`: another thread may run this, and may have blocked the
    signal.
    """
    _kill_thread(threading.main_thread().ident or 0, number)


def _steps_before(place: Place) -> int | None:
    """Return the number of steps of the main thread before this signal; None if not known."""
    detail = place.what[3]
    return detail[0] if isinstance(detail, list) and detail and type(detail[0]) is int else None


def _number(place: Place) -> int:
    return int(place.what[1].partition(":")[2])


def _in_main_thread() -> bool:
    return threading.main_thread().ident == _thread.get_ident()


def _ignore(signalnum: int, frame: Any) -> None:
    """Ignore a signal that arrived for real, because the tape delivers it."""

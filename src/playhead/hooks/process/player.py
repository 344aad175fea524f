"""Play a taped process: real pipes, a real pid and a real exit, but only a stand-in is executed.

The stand-in (`stand_in`) reads from a pipe how to end. The player holds the child's ends of the streams. Before the
program gets its process object, the player writes as much of the due output as fits into the pipes; the thread of
`stage` plays the rest. Knows descriptors and the script; does not know `subprocess` or threads.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from playhead import clock
from playhead.errors import Divergence
from playhead.hooks.process.exits import signal_name
from playhead.hooks.process.flight import Flight
from playhead.hooks.process.played_streams import GONE, PlayedInput, PlayedStreams
from playhead.hooks.process.script import Script, Show, Wait
from playhead.hooks.process.stage import STAGE, await_exit, now_ns, visibly
from playhead.hooks.process.stand_in import StandIn, chosen
from playhead.recording import order_slot
from playhead.replay.time.waits import RawGuard

# How long to wait for recorded input that the program does not repeat: it must not hang for ever.
_PATIENCE_NS = 60 * 1_000_000_000
# A process quicker than this ends at once: no program can depend on such a duration.
_INSTANT_NS = 50_000_000
# How long a process lives on that was running when the recorded run was killed.
_NEVER_NS = 365 * 24 * 3600 * 1_000_000_000

# Calls a function when an event loop reaches a place. Returns a function that cancels this.
Pend = Callable[[Any, Callable[[], bool]], Callable[[], None]]


class Player:
    """One taped process, being played. The program's thread calls its methods until `go`, and the stage's thread
    afterwards; the sender of a signal calls `signalled`, an event loop that reads a stream calls `attach` and
    `detach`.
    """

    def __init__(
        self,
        script: Script,
        flight: Flight,
        stand_in: StandIn | None = None,
        *,
        is_fed: bool = False,
    ) -> None:
        """`is_fed` means that an event loop will read the output, and calls the player at the places of the tape."""
        self.stand_in = stand_in or chosen()
        self._is_fed = is_fed
        # The stage and event loops play at the same time.
        self._guard = RawGuard()
        self._loops: dict[str, Pend] = {}
        # Steps that an event loop has taken over, by their index, each with the function that cancels this.
        self._pended: dict[int, Callable[[], None]] = {}
        self._script = script
        self._flight = flight
        self._streams = PlayedStreams(in_turn=script.is_read_unseen)
        self._next = 0
        self._input = PlayedInput(script.stdin, has_own_clock=script.has_own_clock)
        self._signals = 0
        self._control = -1
        self._stand_in = -1
        # A moment of the replay, and the moment of the tape that it corresponds to.
        self._anchor = (now_ns(), 0)
        self._active_ns = clock.mono_ns()
        self._given_up = False
        self._may_continue = False
        # Whether the stand-in was told to end while there are still streams to play.
        self._has_left = False

    def take(self, stream: str, fd: int, *, alone: bool = False, cooked: bool = False) -> None:
        """Take over `fd`, the child's end of a stream. If `alone`, no other process holds it: it is set to not block,
        and its pipe is enlarged. `cooked` means that its terminal translates the output.
        """
        size = self._script.size_of(stream) if alone else None
        self._streams.take(stream, fd, size, cooked=cooked)

    def has_ended(self, stream: str) -> bool:
        """Return whether the end of this stream has been played."""
        return stream in self._streams.alone and stream not in self._streams.ends

    def wants(self, stream: str) -> bool:
        """Return whether the tape has output for this stream."""
        return bool(self._script.size_of(stream))

    def ready(self) -> int:
        """Write the output that is due now. Returns the descriptor that becomes the stand-in's stdin."""
        self._stand_in, self._control = os.pipe()
        self.play()
        return self._stand_in

    def go(self) -> None:
        """Hand over to the stage, now that the stand-in runs."""
        os.close(self._stand_in)
        self._stand_in = -1
        if not self.is_over:
            STAGE.enter(self)

    def stop(self) -> None:
        """Close everything: the stand-in was not started, or belongs to another process."""
        if self._stand_in >= 0:
            os.close(self._stand_in)
        self._finish(None)

    def attach(self, stream: str, pend: Pend) -> None:
        """Let the event loop that begins to read this stream play its steps."""
        if self._is_fed:
            with self._guard:
                self._loops[stream] = pend
                self._pend_ahead()

    def detach(self, stream: str) -> None:
        """Let the stage play this stream, because its event loop stops reading, temporarily or for good."""
        with self._guard:
            if self._loops.pop(stream, None) is None:
                return
            steps = self._script.steps
            for index in [*self._pended]:
                step = steps[index]
                if isinstance(step, Show) and step.stream == stream:
                    self._pended.pop(index)()
        STAGE.wake()

    def _pend_ahead(self) -> None:
        """Let event loops wait for all steps up to the next one that is not theirs. All at once, because pieces of
        several streams may have arrived in one iteration of a loop.
        """
        steps = self._script.steps
        for index in range(self._next, len(steps)):
            step = steps[index]
            pend = self._loops.get(step.stream) if isinstance(step, Show) else None
            place = None if pend is None else order_slot.place_ahead(step.at_ns)
            if pend is None or place is None:
                return
            if index not in self._pended:
                self._pended[index] = pend(place, self._feeder(index))

    def _feeder(self, index: int) -> Callable[[], bool]:
        """Return a function for the event loop to call at this step. It returns whether there is data to read."""

        def feed() -> bool:
            with self._guard:
                if self._pended.pop(index, None) is None:
                    return False
                ends = len(self._streams.ends)
                self.play()
                # The stage listens to the descriptors that were open, and may have to play the next step.
                is_for_stage = len(self._streams.ends) != ends or self._next not in self._pended
            if is_for_stage:
                STAGE.wake()
            return True

        return feed

    def show(self) -> None:
        """Continue after the step that waits for this: see `Script.held`."""
        self._may_continue = True
        STAGE.wake()

    def give_up(self) -> None:
        """End the stand-in at once, because the program has diverged from the tape."""
        self._given_up = True
        STAGE.wake()

    def signalled(self, number: int) -> bool:
        """Return whether the tape has this signal here. Then it is played, and must not be delivered."""
        wanted = self._script.signals[self._signals : self._signals + 1]
        if wanted != (signal_name(number),) or self.is_over:
            return False
        self._signals += 1
        STAGE.wake()
        return True

    @property
    def is_over(self) -> bool:
        return self._control < 0 and not (self._has_left and self._streams.ends)

    @property
    def is_at_end(self) -> bool:
        """All steps have been played, and the tape has no end of the process."""
        return self._script.ending is None and self._is_done

    @property
    def _is_done(self) -> bool:
        return self._next == len(self._script.steps) and not self._streams.queues

    def due_ns(self) -> int | None:
        """Return the moment of the replay at which the next step is due; None if it is not due by time."""
        if self._streams.queues or self._pended or self.place is not None:
            return None
        if self._is_done:
            if self._script.ending is not None:
                return self._due(self._script.ended_ns)
            return self._anchor[0] + _NEVER_NS if self._script.cut else None
        step = next(iter(self._script.steps[self._next : self._next + 1]), None)
        return self._due(step.at_ns) if isinstance(step, Show) else None

    @property
    def place(self) -> Any:
        """The place on the tape of the next step. None: it is due by time, or after an action of the program."""
        if self._streams.queues or self.is_over:
            return None
        script, places, at = self._script, [], self._next
        if script.ending is not None and not self._has_left and not self._waits_for_program:
            places.append(order_slot.place_ahead(script.ended_ns))
        if at < len(script.steps):
            step = script.steps[at]
            if isinstance(step, Show) and at not in self._pended:
                places.append(order_slot.place_ahead(step.at_ns))
        elif self._has_left and self._is_done and script.over_ns is not None:
            places.append(order_slot.place_ahead(script.over_ns))
        return min(filter(None, places), key=lambda place: place.rank, default=None)

    @property
    def rank(self) -> float:
        """The rank of the next step on the tape, also after the replay has reached it."""
        step = next(iter(self._script.steps[self._next : self._next + 1]), None)
        moment = step.at_ns if isinstance(step, Show) else self._script.ended_ns
        place = getattr(moment, "place", None)
        return float("inf") if place is None else float(place.rank)

    def play(self) -> None:
        """Play all steps that are due, up to the next one that waits for an action of the program."""
        with self._guard:
            self._play()
            self._pend_ahead()

    def _play(self) -> None:
        if self._given_up:
            self._finish(-signal.SIGKILL)
            return
        if self._next < len(self._script.steps):
            self._skip_waiting()
        self._streams.give()
        while self._next < len(self._script.steps) and self._step(self._script.steps[self._next]):
            self._next += 1
            self._streams.give()
        ending = self._script.ending
        if ending is None:
            return
        if order_slot.knows(self._script.ended_ns):
            self._leave(ending)
        elif self._is_done and self._has_come(self._script.ended_ns):
            self._finish(ending)

    @property
    def _waits_for_program(self) -> bool:
        return self._script.waits_after(self._next)

    def look(self, pid: int, number: int) -> None:
        """Let the program check for the `number`-th time whether the process has ended. If this check found the exit in
        the recorded run, wait for it. If the tape does not know, end the stand-in if the exit is the next event.
        """
        ended, found_by = self._script.ended_ns, self._script.found_by_poll
        if self._script.ending is None or not order_slot.knows(ended) or self._waits_for_program:
            return
        is_next = found_by is None and not self._has_left and order_slot.is_next(ended)
        if STAGE.is_here:
            # A finalizer of the program runs here, and no other thread would end the stand-in.
            if (is_next or found_by == number) and not self._has_left:
                self._depart(self._script.ending)
                await_exit(pid)
        elif is_next:
            STAGE.wake()
            await_exit(pid)
        elif found_by == number:
            visibly(lambda: await_exit(pid), lambda: not self._has_left)

    def _depart(self, ending: int) -> None:
        self._has_left, control, self._control = True, self._control, -1
        order_slot.pass_by(self._script.ended_ns)
        self._tell(control, ending)

    def _leave(self, ending: int) -> None:
        """End the stand-in at the place of the exit, which may come before the program reads all output."""
        if self._waits_for_program:
            return
        if not self._has_left and order_slot.has_come(self._script.ended_ns):
            self._depart(ending)
        over = self._script.over_ns
        if self._has_left and self._is_done:
            if over is not None and not self._streams.ends:
                # The program has seen all output and reaches no further point.
                order_slot.pass_by(over)
            if over is None or order_slot.has_come(over):
                self._finish(None)

    def _step(self, step: Wait | Show) -> bool:
        """Take a step if it is due. Return whether it was taken."""
        if isinstance(step, Show):
            if self._next in self._pended or not self._may_show(step):
                return False
            due = self._due(step.at_ns)
            if due > self._anchor[0]:
                self._anchor = (due, step.at_ns)
            self._streams.queue(step.stream, None if step.data is None else memoryview(step.data))
            return True
        if self._streams.queues or not self._is_met(step) or not self._is_as_then(step):
            return False
        self._anchor = (now_ns(), max(step.at_ns, self._anchor[1]))
        return True

    def _may_show(self, step: Show) -> bool:
        if self._is_fed and step.stream in self._streams.alone and order_slot.knows(step.at_ns):
            # Being the next point of the tape is not enough: the loop must have reached that iteration.
            return order_slot.place_ahead(step.at_ns) is None
        return self._has_come(step.at_ns)

    def _has_come(self, at_ns: int) -> bool:
        if order_slot.knows(at_ns):
            return order_slot.has_come(at_ns)
        return self._due(at_ns) <= now_ns()

    def _due(self, at_ns: int) -> int:
        """Return when a moment of the tape is due in this replay. Without a time of the replay, it is due at once."""
        began, then = self._anchor
        return began + at_ns - then if at_ns - then >= _INSTANT_NS and STAGE.is_timed else began

    def _is_met(self, wait: Wait) -> bool:
        still_open = (wait.closed - self._streams.closed) & self._streams.ends.keys()
        if still_open or wait.signals > self._signals or wait.for_show > self._may_continue:
            return False
        is_over = "stdin" in self._streams.closed or "stdin" not in self._streams.ends
        return is_over or self._input.has(wait.stdin, wait.lines)

    def _skip_waiting(self) -> None:
        waits = isinstance(self._script.steps[self._next], Wait)
        if waits and clock.mono_ns() - self._active_ns >= _PATIENCE_NS:
            self._active_ns = clock.mono_ns()
            self._next += 1

    def watched(self) -> dict[int, int]:
        """Return the descriptors that show the program's actions, with the events to poll for."""
        return {**({} if self._control < 0 else {self._control: 0}), **self._streams.watched()}

    def notice(self, fd: int, state: int) -> None:
        """Handle the events that `poll` reported for `fd`, one of the watched descriptors."""
        with self._guard:
            self._notice(fd, state)

    def _notice(self, fd: int, state: int) -> None:
        self._active_ns = clock.mono_ns()
        if fd == self._control:
            self._finish(None)  # the stand-in was killed by a signal that is not on the tape
        elif fd == self._streams.ends.get("stdin"):
            self._hear(fd)
        elif state & GONE:
            self._streams.lose(fd)

    def _hear(self, fd: int) -> None:
        try:
            data = os.read(fd, 65536)
        except OSError:
            data = b""  # the error of a terminal that was closed
        if not data:
            self._streams.closed.add("stdin")
            return
        self._input.add(data)

    def _is_as_then(self, wait: Wait) -> bool:
        """Return whether the program sent the recorded input, except for values that change in every run."""
        if self._flight.sent or "stdin" not in self._streams.ends:
            return True
        if (differs := self._input.difference(wait.stdin)) is None:
            return True
        at, then, now = differs
        self._flight.diverged(
            Divergence(
                f"The program sends other input to {self._flight.name} than in the recording. "
                f"From character {at} on, the recording has {then!r} and this replay {now!r}. "
                "Record the run again, or let this process run for real: `--live process`."
            )
        )
        return False

    def _finish(self, ending: int | None) -> None:
        """End the process. Close all descriptors first: a program that learns of the exit must find all streams at
        their end.
        """
        control, self._control = self._control, -1
        while self._streams.ends:
            self._streams.close(next(iter(self._streams.ends)))
        self._streams.queues.clear()
        while self._pended:
            self._pended.popitem()[1]()
        self._next = len(self._script.steps)
        self._tell(control, ending)

    def _tell(self, control: int, ending: int | None) -> None:
        """Tell the stand-in how to end; None if it has ended, or ends without that."""
        if control >= 0:
            if ending is not None:
                with suppress(BrokenPipeError):  # the stand-in has exited already
                    os.write(control, self.stand_in.end_message(ending))
            os.close(control)

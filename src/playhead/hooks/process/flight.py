"""Report what the program observes of a running process to the crossing, in the order of observation.

Knows exits, streams and signals as the program observes them; does not know where they are hooked. Besides
`stdin`, `stdout` and `stderr` the tape has three streams of marks, which tell a replay what the process
waited for: `signal` (sent by the program), `closed` (a stream that the program closed before its end) and
`eof` (an end that the program saw before it did something else).
"""

from __future__ import annotations

import _thread
import os
from contextvars import ContextVar

from playhead import clock
from playhead.encoding.values import safe_str
from playhead.errors import Divergence
from playhead.hooks.process import exits
from playhead.host.later import Later
from playhead.host.lean import deque, wrapping
from playhead.recording import deck, order_slot, points
from playhead.recording.adapter import Adapter
from playhead.recording.deck import Crossing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar

    from playhead.hooks import answers
    from playhead.hooks.process.player import Player
    from playhead.recording.calls import Taped
    from playhead.recording.recorder import Recorder

    F = TypeVar("F", bound=Callable[..., None])
else:
    answers = Later("playhead.hooks.answers")  # a recorded program never needs it

# Set while a hook of ours runs the original function, so that a hook further down passes through:
# `Popen(close_fds=False)` calls `os.posix_spawn`. "spawn" means that the child made here will exec.
within: ContextVar[str] = ContextVar("playhead_process", default="")

# The crossing of a hook whose original function makes the process through a function that is hooked as well.
# The inner hook performs or serves this crossing, and does not open another one.
given_crossing: ContextVar[Crossing | None] = ContextVar("playhead_process_crossing", default=None)

# Set while asyncio starts a process: an event loop will read its output.
read_by_loop: ContextVar[bool] = ContextVar("playhead_process_read_by_loop", default=False)

# How much may be held back while the program writes. A program that writes and reads more than this at the
# same time does not wait for answers in between, so the order of the two does not matter.
_MOST_HELD = 1 << 20

by_pid: dict[int, Flight] = {}
_unfinished: set[Flight] = set()


def _fails_open(method: F) -> F:
    """Recording fails open: errors while a process is observed become a warning."""

    def guarded(flight: Flight, *args: Any, **kwargs: Any) -> None:
        try:
            method(flight, *args, **kwargs)
        except Exception as error:  # noqa: BLE001  as the docstring says
            if (open_deck := deck.active()) is not None:
                open_deck.recorder.warn(f"a process is not recorded in full: {safe_str(error)}.")

    return wrapping(guarded, method)  # type: ignore[return-value]  # it takes what `method` does


class Flight:
    """One process, from its call to its outcome.

    The outcome is written when the exit is known and every stream that the program reads has ended: data that
    the program reads after `wait()` belongs to the call as well.
    """

    __slots__ = (
        *("_alive_ns", "_at_exit", "_crossing", "_eof", "_exit", "_exited_ns", "_facts", "_held"),
        *("_held_size", "_late", "_open", "_over", "_started", "_telling", "_writing"),
        *("_eof_ns", "_reap", "divergence", "name", "pid", "player", "sent"),
    )

    def __init__(self, crossing: Crossing, *, sent: bool = False) -> None:
        self._crossing: Crossing | None = crossing
        self._open: set[str] = set()
        self._eof: list[str] = []
        # When the program saw the end of each stream.
        self._eof_ns: dict[str, int] = {}
        self._exit: int | None = None
        self._reap: Callable[[], None] | None = None
        self._exited_ns = 0
        self._alive_ns: int | None = None
        self._at_exit: list[Callable[[Flight], None]] = []
        # Acquired once, by the thread that ends the flight: several threads may notice the exit.
        self._over = _thread.allocate_lock()
        self._started = crossing.started_ns
        self._writing: list[None] = []
        self._held: deque[tuple[str, bytes]] = deque()
        self._held_size = 0
        self._telling: set[int] = set()
        self._late: deque[tuple[str, bytes]] = deque()
        self._facts: dict[str, Any] = {}
        self.name = crossing.call.name
        self.pid = 0
        self.divergence: Divergence | None = None
        self.player: Player | None = None
        self.sent = sent  # whether the request already has the whole stdin

    @property
    def crossing(self) -> Crossing | None:
        """The crossing to report to; None if the run is over, or if this is a forked copy of the program."""
        crossing = self._crossing
        return crossing if crossing is not None and deck.is_open(crossing.deck) else None

    @property
    def recorder(self) -> Recorder | None:
        return None if self._crossing is None else self._crossing.deck.recorder

    @_fails_open
    def started(self, pid: int) -> None:
        self.pid = pid
        # A busy machine takes long to start a process. Timeouts of the program count from here.
        self._facts["started_ns"] = clock.mono_ns() - self._started
        by_pid[pid] = self
        _unfinished.add(self)
        if (crossing := self.crossing) is not None:
            last_words = crossing.deck.recorder.last_words
            for one in last_words:
                if type(one) is _LeaveAll:
                    return
            last_words.append(_LeaveAll(crossing.deck.recorder))

    @_fails_open
    def failed(self, error: BaseException) -> None:
        """Report that the process could not be started."""
        self._leave_at_exit()
        if self._over.acquire(blocking=False) and (crossing := self.crossing) is not None:
            facts = {"filename": exits.file_name(error)} if isinstance(error, OSError) else {}
            crossing.raised(error, **facts)

    def expects(self, stream: str) -> None:
        self._open.add(stream)

    def expected(self, stream: str) -> bool:
        """Return whether the end of this stream is still to be reported."""
        return stream in self._open or (stream == "stdin" and self._exit is None)

    def at_exit(self, action: Callable[[Flight], None]) -> None:
        """Register an action that is only possible after the process has exited."""
        self._at_exit.append(action)

    @_fails_open
    def heard(self, stream: str, data: bytes) -> None:
        """Report data that the program has read."""
        if not self._writing or self._held_size > _MOST_HELD:
            self._tell_held()
            self._tell(stream, data)
            return
        self._held.append((stream, data))
        self._held_size += len(data)
        if not self._writing:
            self._tell_held()

    def begin_write(self) -> bool:
        """Note that the program is about to write to the process. Return whether the written data is to be reported.

        The size of the write is known only afterwards. Data that another thread reads meanwhile is held back, because
        it may be the answer and has to follow the write on the tape.
        """
        self._writing.append(None)
        return self._exit is None and not self.sent

    @_fails_open
    def wrote(self, data: bytes, *, counts: bool = True) -> None:
        """Report the data of the write that began with `begin_write`. `counts` is what that method returned."""
        try:
            if counts and data:
                self._tell_eof()
                self._tell("stdin", data)
        finally:
            self._writing.pop()
            self._tell_held()
        self._end_if_over()

    @_fails_open
    def ended(self, stream: str, *, closed: bool = False) -> None:
        """Report that the program has seen the end of a stream, or has closed it."""
        is_end = not closed and stream in self._open
        if self._exit is None and self.expected(stream):
            if closed:
                self._act("closed", stream)
            elif stream != "stdin":
                self._eof.append(stream)
        if is_end:
            self._eof_ns[stream] = self._note_point()
        self._open.discard(stream)
        self._end_if_over()
        self._await_exit()

    @_fails_open
    def dropped(self, reap: Callable[[], None]) -> None:
        """Report that the program has no reference to the process any more. `reap` finds out whether it has ended."""
        self._reap = reap
        self._await_exit()

    def _await_exit(self) -> None:
        if self._reap is not None and self._eof_ns and not self._open and self.crossing is not None:
            exits.reap_soon(self._reap, lambda: self._exit is not None)

    @_fails_open
    def signalled(self, number: int) -> None:
        """Report that the program has sent a signal."""
        if number and self._exit is None:
            self._act("signal", exits.signal_name(number))

    def diverged(self, error: Divergence) -> None:
        """End and report a call whose process the program uses in another way than before."""
        self.divergence = error
        if self.player is not None:
            self.player.give_up()
        if self._over.acquire(blocking=False) and (crossing := self.crossing) is not None:
            crossing.deck.part(crossing.call, "parted", str(error))
            crossing.raised(error)

    def check(self, *, waits: bool = False) -> None:
        """Raise an error that a player's thread has stored. If `waits`, the program is about to wait for the process;
        this is a divergence if the tape ends before the process does.
        """
        if waits and self.divergence is None and self.player is not None and self.player.is_at_end:
            crossing = self.crossing
            if crossing is not None and crossing.taped is not None and crossing.taped.dies:
                crossing.cut()  # here the recorded run was killed, and so is this one
            self.diverged(
                Divergence(
                    f"The tape of {self.name} ends here: it was still running when the recorded run "
                    "ended, and now the program waits for it. Record the run again, or let this "
                    "process run for real: `--live process`."
                )
            )
        if self.divergence is not None:
            raise self.divergence

    @_fails_open
    def exited(self, code: int) -> None:
        """Report that the program knows how the process ended. `code` is an exit code, or minus the signal."""
        if self._exit is None:
            by_pid.pop(self.pid, None)
            # Before the exit gets its place: a program that knows of the exit may look at the written output.
            self._leave_at_exit()
            self._exit, self._exited_ns = code, self._note_point()
        self._end_if_over()

    def _note_point(self) -> int:
        """Note in the order that the program learns something other than a stream. Return the time since the call."""
        now = clock.mono_ns()
        since = now - self._started
        crossing = self.crossing
        if crossing is not None and crossing.seq is not None and not crossing.is_inner:
            points.note_call(crossing.seq, since, now, crossing.deck.recorder)
        return since

    def _leave_at_exit(self) -> None:
        while self._at_exit:
            self._at_exit.pop(0)(self)

    def add_facts(self, facts: Mapping[str, Any]) -> None:
        """Add members to the outcome."""
        self._facts.update(facts)

    def look(self, number: int) -> None:
        """Tell the player that the program now checks for the `number`-th time whether the process has ended."""
        if self.player is not None and self._exit is None:
            self.player.look(self.pid, number)

    def is_alive(self) -> None:
        """Note the time at which the program found that the process had not ended yet."""
        self._alive_ns = clock.mono_ns() - self._started

    def mute(self) -> None:
        self._crossing = None

    @_fails_open
    def leave(self) -> None:
        """Report that the run ends before the process, or before the program has read all of its output."""
        if self._exit is None:
            # Without them, a replay would wait for the end of output that the program has read to its end.
            self._tell_eof()
            if self._over.acquire(blocking=False) and (crossing := self.crossing) is not None:
                crossing.left(pid=self.pid)
        else:
            self._open.clear()
            self._end_if_over()
        _unfinished.discard(self)

    def _act(self, mark: str, what: str) -> None:
        if not (mark == "closed" and what == "stdin" and self.sent):
            self._tell_eof()
            self._tell(mark, what.encode())

    def _tell_held(self) -> None:
        while self._held and not self._writing:
            self._tell(*self._held.popleft())
        self._held_size = 0

    def _tell(self, stream: str, data: bytes) -> None:
        me = _thread.get_ident()
        self._late.append((stream, data))
        if me in self._telling:
            return  # in a signal handler or finalizer that interrupted the loop below, which reports it
        self._telling.add(me)
        try:
            while self._late:
                stream, data = self._late.popleft()
                if (crossing := self.crossing) is not None:
                    crossing.chunk(data, stream)
        finally:
            self._telling.discard(me)
        self._end_if_over()

    def _tell_eof(self) -> None:
        while self._eof:
            self._tell("eof", self._eof.pop(0).encode())

    def _end_if_over(self) -> None:
        code = self._exit
        if code is None or self._open or self._writing or _thread.get_ident() in self._telling:
            return
        if not self._over.acquire(blocking=False):
            return
        _unfinished.discard(self)
        if (crossing := self.crossing) is not None:
            eof_ns = self._eof_ns or None
            times = {"exited_ns": self._exited_ns, "alive_ns": self._alive_ns, "eof_ns": eof_ns}
            crossing.returned(code, pid=self.pid, **times, **exits.facts_of(code), **self._facts)


class ProcessAdapter(Adapter):
    """One start of a process. The flight reports what the program observes of the process afterwards."""

    streams = True
    flight: Flight

    def begin(self, crossing: Crossing, *, sent: bool = False) -> Flight:
        """Start the flight. `sent` means that the request already has the whole stdin."""
        flight = self.flight = Flight(crossing, sent=sent)
        return flight

    def observe(self, crossing: Crossing, result: Any) -> Any:
        return result

    def failed(self, crossing: Crossing, error: BaseException) -> None:
        self.flight.failed(error)

    def taped_start(self, crossing: Crossing) -> Taped:
        """Return the taped process; raise the taped error if it could not be started."""
        taped = crossing.taped
        if taped is None:
            raise AssertionError("only a taped process is served")
        if taped.how == "raised":
            error = answers.revived(taped.error, crossing.call.name)
            if isinstance(error, KeyboardInterrupt):
                order_slot.interrupt_if_due()
            if isinstance(error, OSError) and taped.facts.get("filename") is not None:
                error.filename = taped.facts["filename"]
            raise error
        return taped


def flight_of(crossing: Crossing) -> Flight | None:
    return next((one for one in _unfinished if one._crossing is crossing), None)


def leave_all(recorder: Recorder | None = None) -> None:
    """Report the processes that outlive the run of this recorder; None stands for every run in this process."""
    for flight in list(_unfinished):
        if recorder is None or flight.recorder is recorder:
            flight.leave()


class _LeaveAll:
    """Calls `leave_all` when the run of its recorder ends."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def __call__(self) -> None:
        leave_all(self._recorder)


def _forget_all() -> None:
    """Forget all processes in a forked child: they belong to the parent, which reports them on its own tape."""
    for flight in list(_unfinished):
        flight.mute()
    by_pid.clear()
    _unfinished.clear()
    within.set("exec" if within.get() == "spawn" else "")


os.register_at_fork(after_in_child=_forget_all)

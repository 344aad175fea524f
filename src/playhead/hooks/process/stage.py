"""Run the thread that plays taped processes, in the time of the replay.

One thread plays all processes, because the time of a replay stands still while a thread is starting. It is started
for the first process that needs it. Knows waiting; does not know what is played.
"""

from __future__ import annotations

import _thread
import fcntl
import os
import select
import signal
import termios
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from playhead import clock
from playhead.recording import order_slot
from playhead.replay.time import virtual_time

T = TypeVar("T")

_PIPE, _WIDEST = 1 << 16, 1 << 20
# The longest wait of the thread. Then it checks whether a player has waited too long for an action of the program.
_LONGEST_MS = 61_000


class Playing(Protocol):
    """See `process_player.Player`."""

    @property
    def is_over(self) -> bool: ...

    @property
    def place(self) -> Any: ...

    @property
    def rank(self) -> float: ...

    def due_ns(self) -> int | None: ...

    def watched(self) -> dict[int, int]: ...

    def notice(self, fd: int, state: int) -> None: ...

    def play(self) -> None: ...

    def stop(self) -> None: ...


def now_ns() -> int:
    """Return the time of the replay, or the real time if the replay has none."""
    time = virtual_time.active()
    return clock.mono_ns() if time is None else time.now_ns()


def read_visibly(fd: int, read: Callable[[], T]) -> T:
    """Read from a taped process, and tell the time of the replay that the thread waits.

    Waits first and reads afterwards. If the wait itself consumed the data, a thread that has read the last byte and
    has not returned from its wait would seem to be stuck.
    """
    time = virtual_time.active()
    if time is not None and os.get_blocking(fd):

        def attempt(seconds: float | None) -> bool:
            look = select.poll()
            look.register(fd, select.POLLIN)
            return bool(look.poll(None if seconds is None else seconds * 1000))

        time.wait(None, attempt, lambda: is_silent(fd))
    return read()


def visibly(wait: Callable[[], T], is_stuck: Callable[[], bool]) -> T:
    """Wait for a taped process, and tell the time of the replay that the thread waits. `is_stuck` must become false
    before `wait` returns.
    """
    time = virtual_time.active()
    if time is None:
        return wait()
    came: list[T] = []

    def attempt(seconds: float | None) -> bool:
        came.append(wait())
        return True

    time.wait(None, attempt, is_stuck)
    return came[0]


def await_exit(pid: int) -> None:
    """Wait until the process has ended. Does not reap it."""
    with suppress(ChildProcessError):
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def is_silent(fd: int) -> bool:
    """Return whether a read would block: there is no data, and the stream has not ended."""
    look = select.poll()
    look.register(fd, select.POLLIN)
    try:
        return not look.poll(0)
    except OSError:
        return False


class _Released:
    """The first place that the players wait for. Has the interface of `loop_points.LoopState`, so that the stage's
    thread can wait for it.
    """

    def __init__(self, stage: PlayerStage) -> None:
        self._stage = stage
        self.is_due = False

    def first(self) -> Any:
        if self.is_due:
            return None
        places = [player.place for player in self._stage.players]
        return min((one for one in places if one is not None), key=_rank, default=None)

    def release(self, place: Any) -> None:
        """Wake the stage, because the replay has passed this place. All places that a loop read in the same iteration
        are passed as well.
        """
        head = order_slot.active()
        while head is not None and place.turn:
            others = [one for player in self._stage.players if (one := player.place) is not None]
            same = [one for one in others if (one.loop, one.turn) == (place.loop, place.turn)]
            if not same:
                break
            head.pass_by(min(same, key=_rank))
        self.is_due = True
        self._stage.wake()

    def release_late(self) -> bool:
        return False


def _rank(place: Any) -> int:
    rank: int = place.rank
    return rank


class PlayerStage:
    """The players that wait for something."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._players: list[Playing] = []
        self._released = _Released(self)
        order_slot.is_playing = lambda: self._released.is_due
        self._entering: list[Playing] = []
        self._woken: tuple[int, int] | None = None
        # The right to start the thread. Threads of the program enter at the same time, and a lock would be gated.
        self._unstarted = [True]
        self._thread = 0

    @property
    def is_timed(self) -> bool:
        """The replay has a virtual time. Without one, all steps are due at once."""
        return virtual_time.active() is not None

    @property
    def is_here(self) -> bool:
        """Return whether the current thread is that of the stage. Then a finalizer of the program runs here: Python
        collects garbage in whichever thread needs memory.
        """
        return _thread.get_ident() == self._thread

    @property
    def players(self) -> list[Playing]:
        return self._players

    def enter(self, player: Playing) -> None:
        self._entering.append(player)
        try:
            self._unstarted.pop()
        except IndexError:
            self.wake()  # if it is only starting, it will find the player by itself
            return
        woken = os.pipe()
        os.set_blocking(woken[1], False)
        self._woken = woken
        _thread.start_new_thread(self._run, ())

    def wake(self) -> None:
        """Wake the thread after an action that no descriptor reports."""
        if self._woken is not None:
            with suppress(BlockingIOError):  # it is awake already
                os.write(self._woken[1], b"!")

    def _run(self) -> None:
        # Blocks all signals. A closed stream must raise an error here, however the program handles SIGPIPE.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        self._thread = _thread.get_ident()
        while True:
            while self._entering:
                self._players.append(self._entering.pop(0))
            # In the order of the tape: a loop that finds several pipes ready reads them in this order.
            for player in sorted(self._players, key=lambda player: player.rank):
                player.play()
            self._players = [player for player in self._players if not player.is_over]
            self._listen()

    def _listen(self) -> None:
        """Wait until the program acts, or until something is due."""
        who: dict[int, Playing] = {}
        asked = {} if self._woken is None else {self._woken[0]: select.POLLIN}
        for player in self._players:
            watched = player.watched()
            asked.update(watched)
            who.update(dict.fromkeys(watched, player))
        dues = [due for player in self._players if (due := player.due_ns()) is not None]
        timeout = max(0.0, (min(dues) - now_ns()) / 1e9) if dues else None
        self._released.is_due = False
        for fd, state in _wait(asked, timeout, self._released):
            if fd in who:
                who[fd].notice(fd, state)
            elif self._woken is not None:
                os.read(self._woken[0], 4096)

    def start_anew(self) -> None:
        """Reset the stage in a forked child, which lacks the thread. The players belong to the parent, and their
        descriptors must not stay open in both processes.
        """
        for player in (*self._players, *self._entering):
            player.stop()
        for fd in self._woken or ():
            os.close(fd)
        self._begin()


def _wait(
    asked: dict[int, int], timeout: float | None, released: _Released
) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []

    def attempt(seconds: float | None) -> bool:
        most = _LONGEST_MS if seconds is None else min(_LONGEST_MS, seconds * 1000)
        found[:] = _poll(asked).poll(most)
        return bool(found)

    time = virtual_time.active()
    if time is None:
        attempt(timeout)
    else:
        time.wait(timeout, attempt, lambda: not _poll(asked).poll(0), loop=released)
    return found


def _poll(asked: dict[int, int]) -> select.poll:
    """Return a new poll object: two threads cannot use the same one at a time."""
    poll = select.poll()
    for fd, events in asked.items():
        poll.register(fd, events)
    return poll


def room_of(fd: int) -> int:
    room = select.poll()
    room.register(fd, select.POLLOUT)
    return dict(room.poll(0)).get(fd, 0)


def widen(fd: int, size: int) -> None:
    """Enlarge a pipe to hold all of its output, if the system allows it. Then no thread has to write the rest later."""
    widen = getattr(fcntl, "F_SETPIPE_SZ", None)
    if widen is not None and _PIPE < size <= _WIDEST:
        with suppress(OSError):
            fcntl.fcntl(fd, widen, size)


def make_raw(fd: int) -> None:
    """Switch off echo and translation: the terminal's recorded output is on the tape already."""
    mode = termios.tcgetattr(fd)
    mode[0] = mode[1] = mode[3] = 0
    termios.tcsetattr(fd, termios.TCSANOW, mode)


STAGE = PlayerStage()
os.register_at_fork(after_in_child=STAGE.start_anew)

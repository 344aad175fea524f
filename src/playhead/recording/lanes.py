"""Lanes: which strand of concurrency an event belongs to. Knows context variables; not events.

A lane is a spawn path (`main`, `main/2`, `worker-3/1`): the n-th task, thread or job started from
a lane has the same name in every run, whatever the scheduler does. `hooks` carries lanes into
tasks, threads and executors.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar
from itertools import count

from playhead.host.later import Later

TYPE_CHECKING = False
if TYPE_CHECKING:
    import hashlib
    from collections.abc import Callable, Iterable
    from contextvars import Token
    from types import CodeType, FrameType, TracebackType
    from typing import Any

    from playhead.events import Ref
    from playhead.recording.calls import Call
    from playhead.recording.crossing import Crossing
    from playhead.recording.deck import Deck

    Luggage = list[tuple[ContextVar[Any], Any]]
else:
    hashlib = Later("hashlib")

_DEEPEST = 12


class Lane:
    """A name, and the count of lanes started from here. Shared by all code that runs in it."""

    __slots__ = ("_counts", "_ordinals", "_reached", "name", "scope")

    def __init__(self, name: str, scope: Deck | None = None) -> None:
        self.name = name
        # The deck of the run that this lane belongs to; None: the deck of the process. Everything that
        # starts from a lane inherits it, so concurrent runs in one process stay apart.
        self.scope = scope
        # The number of the replay, and how far this lane has come in it, in the time of its tape.
        self._reached = (0, 0)
        self._ordinals = count(1)  # next() is atomic: threads that share a lane get two
        self._counts: dict[str, count[int]] = {}

    def count(self, kind: str) -> int:
        """Return the number of the next event of that kind in this lane, from 1."""
        numbers = self._counts.get(kind)
        if numbers is None:
            numbers = self._counts.setdefault(kind, count(1))
        return next(numbers)

    def give_back(self, kind: str, number: int) -> None:
        """Give the number back, because its event did not happen: the next event of that kind gets it."""
        self._counts[kind] = count(number)

    def child(self) -> Lane:
        if is_carried():
            return self.transport()
        ordinal = next(self._ordinals)
        if self.name.count("/") < _DEEPEST:
            return Lane(f"{self.name}/{ordinal}", self.scope)
        return Lane(_shortened(self.name, ordinal), self.scope)

    def transport(self) -> Lane:
        """Return a lane for what a client does with its connections outside of any request. A replay opens no
        connections, so the tasks that close them must not shift the numbers of other tasks.
        """
        return Lane(f"{self.name}/~{self.count('~')}", self.scope)

    def process(self) -> str:
        """Return the lane of a process that is started from here. Processes have their own count: a replay does not
        start the processes whose answers are on the tape, and tasks and threads must keep their numbers.
        """
        return f"{self.name}/p{self.count('process')}"

    def worker(self) -> str:
        """Return the lane of a process that a replay runs again, such as a worker of a pool. Workers have their own
        count: a replay starts all of them, but not the other processes.
        """
        return f"{self.name}/w{self.count('worker')}" if counts_workers else self.process()

    def job(self) -> Lane:
        """Return a lane in which a worker thread of trio reports the end of its job. Such jobs have their own count:
        tapes of older versions have no lanes for them.
        """
        return Lane(f"{self.name}/t{self.count('job')}", self.scope)

    def restart(self) -> None:
        """Count from 1 again: another run begins here."""
        self._reached = (0, 0)
        self._ordinals = count(1)
        self._counts = {}

    @property
    def reached_ns(self) -> int:
        """Return how far this lane has come in the replay, in the time of the tape; 0: nowhere yet."""
        replay, at_ns = self._reached
        return at_ns if replay == _replay else 0

    def reach(self, at_ns: int) -> None:
        """Note that the lane has come to this moment of the tape."""
        self._reached = (_replay, max(self.reached_ns, at_ns))

    def forget_reached(self) -> None:
        self._reached = (0, 0)

    def __repr__(self) -> str:
        return f"Lane({self.name!r})"


# Whether workers have their own count. Older tapes do not have it.
counts_workers = True

# Lanes outlive replays in one process, and every tape has a time of its own.
_replay = 0


def begin_replay() -> None:
    """Begin the replay of another tape: the positions of lanes on earlier tapes do not count."""
    global _replay  # noqa: PLW0603  one number a process
    _replay += 1


def know_processes(names: Iterable[str]) -> None:
    """Learn the lanes of the processes on the tape, and count workers as its recorder did."""
    global counts_workers  # noqa: PLW0603  one flag a process
    parts = {name.rpartition("/")[2] for name in names}
    had_others = any(_is_process(one, "p") for one in parts)
    counts_workers = not had_others or any(_is_process(one, "w") for one in parts)


def _is_process(part: str, letter: str) -> bool:
    return part[:1] == letter and part[1:].isdecimal()


def _shortened(name: str, ordinal: int) -> str:
    """Return a short name for a deeply nested lane: a chain of tasks that each start the next one must not grow the
    name for ever.
    """
    root = name.partition("/")[0]
    digest = hashlib.sha256(f"{name}/{ordinal}".encode()).hexdigest()[:10]
    return f"{root}/~{digest}"


def is_carried() -> bool:
    """Return whether the code running now carries a request to a server, or is a part of a tool. A replay serves the
    request or the tool from the tape and does not start the tasks and threads that worked on the answer, so these must
    not shift the numbers of the others.
    """
    if printing.get() is not None:
        return not in_handler()
    calls = inside.get()
    return bool(calls) and any(call.boundary in _CARRIED for call in calls) and not in_handler()


# The code of the program's signal handlers, filled by `hooks/input/signals`.
handler_codes: set[CodeType] = set()


def in_handler() -> bool:
    """Return whether a signal handler of the program runs. The interpreter runs it in the middle of whatever the main
    thread does, for example of a call, and the handler is not a part of that call.
    """
    if not handler_codes:
        return False
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code in handler_codes:
            return True
        frame = frame.f_back
    return False


MAIN = Lane("main")

current: ContextVar[Lane] = ContextVar("playhead_lane", default=MAIN)
# The event that encloses the current code: a turn, a call, a seam. None: the run itself.
enclosing: ContextVar[Ref | None] = ContextVar("playhead_enclosing", default=None)

# The calls that the code running now is part of, innermost last.
inside: ContextVar[tuple[Call, ...]] = ContextVar("playhead_inside", default=())
_CARRIED = frozenset({"http", "llm", "grpc", "sql", "stream"})

# The outermost tool call that the running code is part of. A replay does not run the tool, so the events
# inside it have no place in the order, and its output is a part of its answer.
printing: ContextVar[Crossing | None] = ContextVar("playhead_printing", default=None)

# Variables that a thread or a job inherits from where it was started, besides its own lane: Python gives
# threads an empty context. Other modules add their variables here.
carried: list[ContextVar[Any]] = [enclosing, printing]


# The attribute of an asyncio task that holds the number of tasks made before it.
NUMBER = "_playhead_number"

# The attribute of a future that holds the lane of its job.
OF_JOB = "_playhead_lane"

_has_threads = False
_has_writers = False


def have_threads() -> bool:
    """Return whether a thread or a job was started since the run began."""
    return _has_threads


def have_writers() -> bool:
    """Return whether a child was started since the run began that writes to the program's own streams."""
    return _has_writers


def start_writer() -> None:
    """Note that a child writes to our streams while the program continues: the order of output is recorded
    from now on.
    """
    global _has_writers  # noqa: PLW0603  one flag a process
    _has_writers = _has_writers or not is_carried()


def root_here() -> str:
    """Return the name of the first lane of a run that begins here: that of the lane that the program named, if any."""
    name = current.get().name
    is_named = name != MAIN.name and not name.startswith(f"{MAIN.name}/")
    return name if is_named else "main"


def start_thread() -> None:
    """Note that the program starts a thread or a job."""
    global _has_threads  # noqa: PLW0603  one flag a process
    if not _has_threads and not is_carried():
        _has_threads = True


def pack() -> Luggage:
    """Return a lane for a thread or job that is about to be started here, and the inherited variables."""
    start_thread()
    return [(current, current.get().child()), *((one, one.get()) for one in carried)]


def pack_transport() -> Luggage:
    """Return the same for a thread that a replay may not start: it does not shift the numbers of the others."""
    return [(current, current.get().transport()), *((one, one.get()) for one in carried)]


def unpack(luggage: Luggage) -> list[Token[Any]]:
    return [variable.set(value) for variable, value in luggage]


def own_nothing(_lane: Lane | None) -> Lane | None:
    return None


# Sets the lane for which this thread takes locks from now on (None: for no lane whose order matters), and returns the
# previous one. Replaced where the order of locks is kept (`hooks/order/noted_locks`). The thread of an event loop takes
# locks for no lane: its tasks are ordered by their own points.
own_thread: Callable[[Lane | None], Lane | None] = own_nothing


class lane:  # noqa: N801  (used as a verb: `with playhead.lane("worker-3"):`)
    """Name the lane of everything that happens in a block, for example one worker of a pool.

        with playhead.lane("worker-3"):  # or `async with`
            work()

    A replay matches the calls of a lane in their order. Without a name, lanes are numbered in the order in
    which tasks and threads start.
    """

    __slots__ = ("_lane", "_tokens")

    def __init__(self, name: str) -> None:
        self._lane = Lane(str(name))
        self._tokens: list[Token[Lane]] = []

    def __enter__(self) -> Lane:
        self._lane.scope = current.get().scope
        self._tokens.append(current.set(self._lane))
        return self._lane

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        reset(current, self._tokens.pop())

    async def __aenter__(self) -> Lane:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)


def reset(variable: ContextVar[Any], token: Token[Any]) -> None:
    """Reset the variable. If the host left the block in another context, there is nothing to undo."""
    try:
        variable.reset(token)
    except ValueError:
        return

"""Activity that virtual time cannot see: threads in unknown waits, child processes, and data on its way."""

from __future__ import annotations

import os
import posix
import threading
from collections.abc import Callable, Collection
from types import FrameType
from typing import TYPE_CHECKING

from playhead import clock
from playhead.recording import where

if TYPE_CHECKING:
    from playhead.replay.print_order import ReplayedPrints

_PATIENCE_NS = 1_000_000_000
# For Playhead's own processes and threads that stand in for a taped process: they answer at once, or wait for the
# program.
_SHORT_PATIENCE_NS = 20_000_000
# For a thread that is about to learn that a child or another thread has ended.
_NEWS_PATIENCE_NS = 200_000_000
_MOST_CPU = 0.2

# Playhead's own thread that writes buffered events: its work is invisible to the program.
_BACKGROUND = ("chunks.py",)
# Playhead's own threads that act as the clients of a replayed server.
_CLIENTS = ("threaded_servers.py",)
_CLIENT_THAT_ACTS = "drive"
# Playhead's own threads that answer a WebSocket from the tape: they know whether an answer is due.
_WEBSOCKET_PEERS = ("websocket/conversation.py",)
# A thread that waits until other processes have printed: it acts as soon as they have.
_PRINTERS = "print_order.py"
# The thread in which asyncio waits for a child, and its variable with the pid of the child.
_REAPERS = {"_do_waitpid": "expected_pid"}
_FORK_SERVER = os.path.join("multiprocessing", "forkserver.py")


class OutsideActivity:
    """Detect whether unknown threads and child processes are idle. `is_stand_in(pid)` returns whether a child only
    stands in for a taped process.
    """

    def __init__(self, is_stand_in: Callable[[int], bool] | None = None) -> None:
        self.is_stand_in = is_stand_in or _nobody
        # The order in which several processes print; None if they do not. It knows which of them wait for others.
        self.prints: ReplayedPrints | None = None
        # By thread (or "children"): its position, since when it is there, and the processor time of the process at that
        # moment.
        self._seen: dict[object, tuple[object, int, int]] = {}
        self._children: frozenset[int] = frozenset()
        self._were_several = False
        # Processor time that our own checks have used: it is not a sign that the program works.
        self._looking = 0
        # Threads of the operating system that Python does not know, or no longer knows, and since when.
        self._unseen: dict[str, int] = {}
        # What is on its way to the program, and until when the replay waits for it.
        self._expected: list[tuple[Callable[[], bool], int]] = []

    def count_look(self, since: int) -> None:
        """Count the processor time of a check by this thread. `since` is the thread's processor time at its start."""
        self._looking += clock.thread_cpu_ns() - since

    def expect(self, has_come: Callable[[], bool]) -> None:
        """Count something as activity until `has_come`: the system delivers it to the program, without a thread."""
        self._expected.append((has_come, clock.mono_ns() + _PATIENCE_NS))

    def has_all(self) -> bool:
        """Return whether nothing is on its way to the program."""
        for one in self._expected.copy():
            has_come, until = one
            if not has_come() and clock.mono_ns() < until:
                return False
            if one in self._expected:  # another thread may check as well
                self._expected.remove(one)
        return True

    def is_idle(self, ident: int, frame: FrameType) -> bool:
        """Return whether a thread is idle although it is in no known wait. `frame` is its current frame."""
        if frame.f_code.co_filename.endswith(_PRINTERS):
            return False
        root = inner = frame
        while root.f_back is not None:
            root = root.f_back
            if where.is_own(inner.f_code.co_filename):
                inner = root  # skip the frames of our own hooks
        patience = _PATIENCE_NS
        if where.is_own(root.f_code.co_filename):
            if root.f_code.co_filename.endswith(_CLIENTS):
                # The client that acts does so as soon as it reaches its place. The other clients only read answers.
                return root.f_code.co_name != _CLIENT_THAT_ACTS
            if root.f_code.co_filename.endswith(_BACKGROUND):
                return True
            if root.f_code.co_filename.endswith(_WEBSOCKET_PEERS):
                peer = root.f_locals.get("peer")
                return peer is not None and bool(peer.is_idle())
            patience = _SHORT_PATIENCE_NS
        elif inner.f_code.co_name in _REAPERS:
            # It waits as long as its child lives. Afterwards it has a result for the event loop, however long it takes
            # to get the interpreter lock.
            child = inner.f_locals.get(_REAPERS[inner.f_code.co_name])
            state = _state_of(child) if isinstance(child, int) else None
            return state is not None and state[1] not in ("Z", "X")
        if not self._has_stood(ident, (id(frame), frame.f_lasti), patience):
            return False
        if _is_running(ident):
            self._seen.pop(ident, None)
            return False
        return True

    def threads_are_settled(self, visible: Collection[int]) -> bool:
        """Return whether no thread is starting or ending. Such a thread has no frame, so a thread that joins it seems
        to wait for nothing.
        """
        if len(visible) == 1 and not self._were_several:
            return True
        self._were_several = True
        if clock.threads() == len(visible):
            self._unseen.clear()
            return True
        try:
            tasks = os.listdir("/proc/self/task")
        except OSError:
            return True  # this system does not list threads
        known = {_native_id(ident) for ident in visible}
        now = clock.mono_ns()
        self._unseen = {
            task: self._unseen.get(task, now) for task in tasks if int(task) not in known
        }
        return all(now - since >= _NEWS_PATIENCE_NS for since in self._unseen.values())

    def are_none(self) -> bool:
        """Return whether the calling thread is the only thread, and there are no children, now and at the last check.
        This is a short form of `is_idle`, `threads_are_settled` and `children_are_idle`.
        """
        if self._children or self._unseen or (self._were_several and clock.threads() != 1):
            return False
        if self._expected:
            return False
        try:
            posix.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return True
        return False

    def children_are_idle(self) -> bool:
        try:
            posix.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return self._are(frozenset())
        found = [one for pid in _children() if (one := _state_of(pid)) is not None]
        if (prints := self.prints) is not None:
            found = [one for one in found if not prints.is_waiting(one[0])]
        if not self._are(frozenset(pid for pid, _, _ in found)):
            return False
        states = {state for _, state, _ in found}
        if states & {"R", "D"}:
            self._seen.pop("children", None)
            return False
        if states & {"Z", "X"}:
            patience = _NEWS_PATIENCE_NS
        elif prints is not None and found and all(prints.is_holding(pid) for pid, _, _ in found):
            # They only look for our signal, and for requests of ours. The look needs some processor time, so that
            # they would rarely stand for longer.
            patience = _NEWS_PATIENCE_NS
        elif all(self.is_stand_in(pid) for pid, _, _ in found):
            patience = _SHORT_PATIENCE_NS
        else:
            patience = _PATIENCE_NS
        return self._has_stood("children", tuple(found), patience)

    def _are(self, children: frozenset[int]) -> bool:
        """Return whether the children are the same as before. If a child is gone, a thread may have waited for it and
        may not have had the time to continue yet.
        """
        if children == self._children:
            return True
        self._children = children
        self._seen.clear()
        return False

    def _has_stood(self, who: object, place: object, patience: int) -> bool:
        now, used = clock.mono_ns(), clock.cpu_ns() - self._looking
        seen = self._seen.get(who)
        if seen is None or seen[0] != place:
            self._seen[who] = (place, now, used)
            return False
        _, since, before = seen
        if not since:
            return True  # it was idle before and has not moved since
        waited = now - since
        if waited > _SHORT_PATIENCE_NS and used - before > _MOST_CPU * waited:
            self._seen[who] = (place, now, used)  # the process computes: it may be this thread
            return False
        if waited < patience:
            return False
        self._seen[who] = (place, 0, 0)
        return True


def _nobody(pid: int) -> bool:  # noqa: ARG001  the signature is that of the question
    return False


def _children() -> list[int]:
    """Return the pids of the children. On a system that does not list them the result is empty, and all children are
    waited for.
    """
    found: list[int] = []
    try:
        for task in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{task}/children", "rb") as listed:
                found += map(int, listed.read().split())
    except OSError:
        return found
    return found


def _state_of(pid: int) -> tuple[int, str, int] | None:
    """Return the pid, the state letter (R: running) and the processor time of a process; None if it has ended."""
    fields = _stat(f"/proc/{pid}/stat")
    return None if fields is None else (pid, fields[0].decode(), int(fields[11]) + int(fields[12]))


def _native_id(ident: int) -> int | None:
    """Return the operating system's id of a Python thread; None if `threading` does not know the thread."""
    threads = threading._active  # type: ignore[attr-defined]  # noqa: SLF001  no other way
    thread: threading.Thread | None = threads.get(ident)
    return None if thread is None else thread.native_id


def _is_running(ident: int) -> bool:
    """Return whether a thread is running according to the operating system. A thread that has not moved may wait for a
    processor.
    """
    native_id = _native_id(ident)
    if native_id is None:
        return False
    fields = _stat(f"/proc/self/task/{native_id}/stat")
    return fields is not None and fields[0] in (b"R", b"D")


def _stat(path: str) -> list[bytes] | None:
    try:
        with open(path, "rb") as stat:
            return stat.read().rpartition(b")")[2].split()
    except OSError:
        return None


def is_fork_server() -> bool:
    """Return whether this process is the fork server of `multiprocessing`. It waits for requests as long as the program
    lives, and ends with it.
    """
    frame = clock.frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        if frame.f_code.co_name == "main" and frame.f_code.co_filename.endswith(_FORK_SERVER):
            return True
        frame = frame.f_back
    return False


def is_ours(frame: FrameType) -> bool:
    while frame.f_back is not None:
        frame = frame.f_back
    return where.is_own(frame.f_code.co_filename)


def is_one_starting() -> bool:
    """Return whether a thread is being started: it has no frame yet, so the other checks miss it."""
    return bool(threading._limbo)  # type: ignore[attr-defined]  # noqa: SLF001  no other way

"""Mark where a call starts and ends, for the process that watches the workspace. Runs in the agent's process: small,
quick, and never raises.

A mark is a symbolic link in a folder that the watcher's own queue of file events includes: so marks and
changes have one exact order. The link's target is the address of a socket on which this process waits until the
changes so far are stored: otherwise the next call might overwrite them. Where no change waits to be stored, a line in
a list takes the place of the mark (`call_log`).

Other kinds of marks have a path as their target. `OWN` and the kinds beside it: the program's own code is about to
change this file. `OUTSIDE`: the program is about to write this file, which no workspace has. `READ`: the program is
about to read such a file, and a call may have written it.
"""

from __future__ import annotations

import os
from _thread import get_native_id
from itertools import count

from playhead.clock import mono_ns, process_birth, sleep, wall_ns
from playhead.host.later import Later

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable

    from playhead.recording.calls import Call
    from playhead.workspace.watch import call_log
else:
    socket = Later("socket")
    call_log = Later("playhead.workspace.watch.call_log")  # most processes make no calls

FOLDER = "marks"
START, END, MOMENT, APPLY, FINISH = "S", "E", "M", "A", "F"
# The program opens a file or a database, moves a file or a folder, or changes a path by another system call.
OWN, OWN_DATABASE, OWN_MOVE, OWN_AT_ONCE = "W", "D", "N", "V"
OUTSIDE, READ = "O", "R"
ABOUT_PATHS = frozenset({OWN, OWN_DATABASE, OWN_MOVE, OWN_AT_ONCE, OUTSIDE, READ})
# In a replay: a list of the taped calls that changed files.
SERVED = "served"
# In a replay: a list of those among them whose changes may be those of a call of another process.
SHARED = "shared"
# While recording: which paths the workspaces of the run have, and which process watches them.
COVERED = "covered"
# A replay whose files are not ready in this time continues; the comparison at its end reports it.
_LONGEST_APPLYING_S = 30.0
NO_ANSWER = "-"
# After the address of a process that wants to share the queue of file events: see `call_log`.
SHARES = "+"
# How long a mark waits on average. A mark that waits less leaves the rest to later ones: on an overloaded machine the
# watcher gets processor time late, and a version that it has not read when the next call starts is lost.
_AVERAGE_S = 0.04
_MOST_SAVED_S = 2.0
_LONGEST_S = 1.0
# How long a live call of a fork waits. Nothing waits for a fork as it does for an agent, and its files are found by
# scanning: a change before the first scan would count as one of the program's own code.
_LONGEST_LIVE_S = 5.0
# How long a program waits before it opens a file elsewhere, once per file.
_LONGEST_COPYING_S = 1.0
# After this many missed answers in a row the watcher counts as gone or busy: marks no longer wait, except for one now
# and then that checks whether the watcher is back.
_MOST_MISSES = 5
_NEXT_TRY_NS = 1_000_000_000
# File systems take their times from a clock that is up to 10 ms late.
_LATE_NS = 20_000_000


class OpenMark:
    """A call that has been marked at its start."""

    __slots__ = ("_call", "_marks")

    def __init__(self, marks: CallMarks, call: str) -> None:
        self._marks = marks
        self._call = call

    def end(self) -> None:
        self._marks.end(self._call)


class CallMarks:
    """The marks of this process. Created if the run's folder has a folder for marks.

    `inner`: this process belongs to a call of another process, which owns all changes: a replay serves that call as
    a whole, and never makes the calls inside it.
    """

    def __init__(self, folder: str, *, inner: bool = False) -> None:
        self._folder = folder
        self._inner = inner
        self._misses = 0
        self._missed_ns = 0
        # Waiting time that earlier marks did not need.
        self._saved_s = _MOST_SAVED_S
        # The lists of a replay, by name.
        self._lists: dict[str, frozenset[str]] = {}
        self._is_replay: bool | None = None
        self._covered: tuple[list[str], list[str]] | None = None
        # The process that watches: its pid, 0 if that is unknown, and a token that distinguishes it from a later one.
        self._watcher: tuple[int, str] | None = None
        self._numbers = count()
        # By the wall clock, like the times of files: when the first call started, and when the last one ended. No call:
        # 0.
        self._first_start_ns = self._last_end_ns = 0
        self._open_calls = 0
        # The watcher's queue of file events, and whether the watcher has been asked to share it.
        self._quiet: call_log.QuietQueue | None = None
        self._has_asked = False

    def may_be_written_by_call(self, changed_ns: int) -> bool:
        """Return whether a file that changed at this time may have been written by a call of this process."""
        if self._inner or not self._first_start_ns or changed_ns < self._first_start_ns - _LATE_NS:
            return False
        return bool(self._open_calls) or changed_ns <= self._last_end_ns + _LATE_NS

    def note_own(self, path: str, kind: str = OWN) -> None:
        """Announce that the program's own code is about to change a file.

        A replay runs that code again, so the change must not count as the change of a call. Calls of other threads
        and other processes may be open now, or start before the file is written: so each change is announced.
        """
        if self._inner:
            return
        try:
            os.symlink(path, self._numbered(kind))
        except OSError:
            return

    def note_outside(self, path: str) -> bool:
        """Announce that a file outside the workspaces is about to be written. Return whether its content is stored
        now.
        """
        return self._announce(OUTSIDE, path)

    def note_read(self, path: str) -> bool:
        """Announce that a file outside the workspaces is about to be read. Return whether the watcher has looked at
        it.
        """
        return self._announce(READ, path)

    def _announce(self, kind: str, path: str) -> bool:
        name = self._numbered(kind)
        if self._is_given_up():
            return False
        try:
            os.symlink(path, name)
        except OSError:
            return False
        if _wait_until_gone(name, _LONGEST_COPYING_S):
            self._misses = 0
            return True
        self._miss()
        try:
            os.unlink(name)
        except OSError:
            return True  # it was stored at the last moment
        return False

    def _numbered(self, kind: str) -> str:
        when = f"{mono_ns()}-{get_native_id()}"
        return f"{self._folder}/{kind}.{when}.{os.getpid()}.{next(self._numbers)}"

    def covers(self, path: str) -> bool:
        """Return whether a workspace of the run has this path: its changes are recorded there."""
        if self._covered is None:
            self._covered = _read_covered(f"{self._folder}/{COVERED}")
        roots, left_out = self._covered
        inside = f"{path}/"
        return any(inside.startswith(one) for one in roots) and not any(
            inside.startswith(one) for one in left_out
        )

    def serve(self, call: object, ref: str = NO_ANSWER) -> None:
        """Mark that a taped call is answered. Return when the files are as the call left them. `ref` is the same call
        in this run.
        """
        self._apply(APPLY, SERVED, call, ref)

    def finish(self, call: object) -> None:
        """Mark that a taped call has ended. Return when the files have the changes that it shares with other
        processes.
        """
        self._apply(FINISH, SHARED, call)

    def _apply(self, kind: str, listed: str, call: object, target: str = NO_ANSWER) -> None:
        if listed not in self._lists:
            try:
                with open(f"{self._folder}/{listed}", encoding="utf-8") as file:
                    self._lists[listed] = frozenset(file.read().split("\n"))
            except OSError:
                self._lists[listed] = frozenset()
        if call not in self._lists[listed]:
            return
        name = f"{self._folder}/{kind}.{mono_ns()}.{call}"
        try:
            os.symlink(target, name)
        except OSError:
            return
        _wait_until_gone(name, _LONGEST_APPLYING_S)

    def open(self, call: Call, around: Iterable[Call], ref: str) -> OpenMark | None:
        """Mark a call that starts now, inside the calls `around` it. None: its end need not be marked."""
        if self._inner:
            return None
        if call.owns_changes and not any(one.owns_changes for one in around):
            self.start(ref)
            return OpenMark(self, ref)
        if call.boundary == "llm":
            self.moment(ref)
        return None

    def start(self, call: str) -> None:
        self._open_calls += 1
        self._first_start_ns = self._first_start_ns or wall_ns()
        if not (self._quiet and self._quiet.append(START, call)):
            self._put(START, call, wait=True)

    def end(self, call: str) -> None:
        self._open_calls -= 1
        self._last_end_ns = wall_ns()
        if not (self._quiet and self._quiet.append(END, call)):
            self._put(END, call, wait=True)

    def moment(self, call: str) -> None:
        """Mark that the changes so far happened before this call."""
        if not (self._quiet and self._quiet.is_quiet()):
            self._put(MOMENT, call, wait=False)

    def _put(self, kind: str, call: str, *, wait: bool) -> None:
        started = mono_ns()
        name = f"{self._folder}/{kind}.{started}-{get_native_id()}.{call}"
        try:
            if not wait or self._is_given_up():
                os.symlink(NO_ANSWER, name)
                return
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
                # With an empty name, the kernel chooses an address outside the file system (Linux).
                line.bind("")
                line.settimeout(self._longest_wait())
                asks = not self._has_asked and not self._is_replay
                os.symlink(f"{line.getsockname()[1:].decode()}{SHARES if asks else ''}", name)
                try:
                    if asks:
                        self._share(call_log.receive_queue(line))
                    else:
                        line.recv(1)
                    self._misses = 0
                except OSError:
                    self._miss()
            unused = _AVERAGE_S - (mono_ns() - started) / 1e9
            self._saved_s = max(0.0, min(self._saved_s + unused, _MOST_SAVED_S))
        except (OSError, ValueError):
            return  # a full disk, no descriptors left, a platform without such sockets

    def _share(self, queue: int | None) -> None:
        self._has_asked = True
        if queue is not None:
            self._quiet = call_log.QuietQueue(self._folder, queue)

    def _longest_wait(self) -> float:
        if self._is_replay is None:
            self._is_replay = os.path.exists(f"{self._folder}/{SERVED}")
        return _LONGEST_LIVE_S if self._is_replay else min(_AVERAGE_S + self._saved_s, _LONGEST_S)

    def _miss(self) -> None:
        self._misses += 1
        self._missed_ns = mono_ns()

    def _is_given_up(self) -> bool:
        if self._watcher is None:
            self._watcher = _read_watcher(f"{self._folder}/{COVERED}")
        pid, birth = self._watcher
        if pid and process_birth(pid) != birth:
            return True  # it was killed: nothing will answer
        return self._misses >= _MOST_MISSES and mono_ns() - self._missed_ns < _NEXT_TRY_NS


def _wait_until_gone(name: str, longest_s: float) -> bool:
    """Return whether the watcher removed a mark in time. Polls the file, because sockets do not reach across network
    namespaces.
    """
    latest = mono_ns() + int(longest_s * 1e9)
    pause = 0.0001
    while os.path.lexists(name):
        if mono_ns() >= latest:
            return False
        sleep(pause)
        pause = min(pause * 1.5, 0.005)
    return True


def marks_of(run: str, *, inner: bool = False) -> CallMarks | None:
    """Return the marks of a run whose workspace is watched. None: it is not watched. `inner` is as for `CallMarks`."""
    folder = f"{run}/{FOLDER}"
    return CallMarks(folder, inner=inner) if os.path.isdir(folder) else None


def write_covered(folder: bytes, roots: Iterable[bytes], left_out: Iterable[bytes]) -> None:
    """Tell the processes of a run which folders are recorded, which paths below them are not, and that this process
    watches them.
    """
    me = os.getpid()
    watcher = f"={me} {process_birth(me)} {_pid_namespace()}".encode()
    lines = (*(b"+%s/" % one for one in roots), *(b"-%s/" % one for one in left_out), watcher)
    with open(os.path.join(folder, os.fsencode(COVERED)), "wb") as file:
        file.write(b"\0".join(lines))


def _read_watcher(name: str) -> tuple[int, str]:
    try:
        with open(name, "rb") as file:
            line = next((one for one in file.read().split(b"\0") if one[:1] == b"="), b"")
        pid, birth, namespace = line[1:].decode().split()
        # In a container that the agent started, the pid means another process.
        return (int(pid), birth) if namespace == _pid_namespace() else (0, "")
    except (OSError, ValueError):
        return 0, ""


def _pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return "-"  # without /proc there is one namespace


def _read_covered(name: str) -> tuple[list[str], list[str]]:
    try:
        with open(name, "rb") as file:
            lines = [os.fsdecode(one) for one in file.read().split(b"\0")]
    except OSError:
        lines = ["+/"]  # the folders are not known: nothing is copied
    return (
        [one[1:] for one in lines if one[:1] == "+"],
        [one[1:] for one in lines if one[:1] == "-"],
    )

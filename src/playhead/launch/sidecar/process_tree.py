"""Find the processes that a run started and that are still alive, and end those of a replay. Knows `/proc`.

A process belongs to a run if its environment names the run, if it is in the mount namespace of the run's fence, or if
one of these is its ancestor. The environment alone would miss programs that clear it, and the ancestors alone would
miss daemons. A process that leaves all three is not found.
"""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from playhead import clock
from playhead.launch.guest.variables import RUN
from playhead.tape.store import PLAN

# Processes of a fence and children of a shell end shortly after the command; a busy machine needs a while for that.
_GRACE_NS = 500_000_000
# A killed process may have started another one just before.
_MOST_KILLS = 50
_PAUSE_S = 0.02


class LeftProcess(NamedTuple):
    """A process of a run that outlived the run's command."""

    pid: int
    program: str


class HeldNamespace:
    """The mount namespace of a fence, held open. The kernel gives the number of a namespace that has ended to the
    next one: without this, a run could take the processes of another run for its own, and kill them.
    """

    def __init__(self, pid: int) -> None:
        """Hold the namespace of a process. `name` is None if it is our own namespace, or unknown."""
        self.name: str | None = None
        self._fd = -1
        with suppress(OSError):
            self._fd = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
            found = os.readlink(f"/proc/self/fd/{self._fd}")
            if found != os.readlink("/proc/self/ns/mnt"):
                self.name = found

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def left_of(
    run: str, *, root: int | None = None, namespace: str | None = None
) -> list[LeftProcess]:
    """Return the living processes of a run. `root` is the command, `namespace` is the one of its fence."""
    parents: dict[int, int] = {}
    mine: set[int] = set()
    entry = f"{RUN}={run}".encode()
    for name in _numbers():
        pid = int(name)
        parent = _parent_of(pid)
        if parent is None or pid == os.getpid():
            continue
        parents[pid] = parent
        if pid == root or _is_in(pid, entry, namespace):
            mine.add(pid)
    found = sorted(pid for pid in parents if _descends(pid, parents, mine))
    named = ((pid, _program(pid)) for pid in found)
    return [LeftProcess(pid, name) for pid, name in named if name is not None]


def end_all(
    run: str, *, root: int | None = None, namespace: str | None = None
) -> list[LeftProcess]:
    """Kill the processes of a run, including those that they start meanwhile. Return the killed processes."""
    killed: dict[int, LeftProcess] = {}
    for _ in range(_MOST_KILLS):
        left = left_of(run, root=root, namespace=namespace)
        if not left:
            break
        for one in left:
            killed[one.pid] = one
            with suppress(OSError):
                os.kill(one.pid, signal.SIGKILL)
        _wait_for(left, clock.mono_ns() + _GRACE_NS)
    return list(killed.values())


def left_running(run: Path, held: HeldNamespace | None) -> list[LeftProcess]:
    """Return the processes that outlived the command. Those of a replay are killed; those of a recording belong to
    the user.

    Closes `held`.
    """
    try:
        return _left_running(run, None if held is None else held.name)
    finally:
        if held is not None:
            held.close()


def _left_running(run: Path, namespace: str | None) -> list[LeftProcess]:
    until = clock.mono_ns() + _GRACE_NS
    while left := left_of(str(run), namespace=namespace):
        if not _wait_for(left, until):
            break
    else:
        return []
    if (run / PLAN).exists():
        return end_all(str(run), namespace=namespace)
    return left_of(str(run), namespace=namespace)


def _wait_for(left: list[LeftProcess], until: int) -> bool:
    """Wait until these processes have ended. Returns False when the time is up.

    The kernel reports the end of a process, so `/proc` is read again only when all of them have ended.
    """
    for one in left:
        try:
            fd = os.pidfd_open(one.pid)
        except ProcessLookupError:
            continue
        except (AttributeError, OSError):  # before Linux 5.3, or no descriptors left
            clock.sleep(_PAUSE_S)
            return clock.mono_ns() < until
        try:
            end = select.poll()
            end.register(fd, select.POLLIN)
            if not end.poll(max(0, until - clock.mono_ns()) // 1_000_000):
                return False
        finally:
            os.close(fd)
    return clock.mono_ns() < until


def words(left: list[LeftProcess]) -> str:
    """`3 processes (sh, node, …)`."""
    names = sorted({one.program for one in left})
    shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
    noun = "process" if len(left) == 1 else "processes"
    return f"{len(left)} {noun} ({shown})"


def _numbers() -> list[str]:
    try:
        return [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []  # not Linux


def _parent_of(pid: int) -> int | None:
    """Return the parent. None: the process has ended, even if its parent has not waited for it yet."""
    with suppress(OSError, ValueError, IndexError):
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, parent = file.read().rpartition(b")")[2].split()[:2]
        return None if state in (b"Z", b"X") else int(parent)
    return None


def _is_in(pid: int, entry: bytes, namespace: str | None) -> bool:
    with suppress(OSError):
        if namespace is not None and os.readlink(f"/proc/{pid}/ns/mnt") == namespace:
            return True
        with open(f"/proc/{pid}/environ", "rb") as file:
            return entry in file.read().split(b"\0")
    return False


def _descends(pid: int, parents: dict[int, int], mine: set[int]) -> bool:
    at = pid
    for _ in range(len(parents)):
        if at in mine:
            return True
        if at not in parents:
            return False
        at = parents[at]
    return False


def _program(pid: int) -> str | None:
    """Return the name of the program. None: the process has ended meanwhile."""
    with suppress(OSError), open(f"/proc/{pid}/comm", "rb") as file:
        return file.read().decode("utf-8", "replace").strip()
    return None

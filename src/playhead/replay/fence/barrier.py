"""The fence around a replayed command, from the launcher's side: build the best fence that this machine supports, pass
its listeners out, start the command in it. Knows which fences exist; each has a module of its own.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from playhead.errors import NoFence
from playhead.host.later import Later
from playhead.replay.fence import inside
from playhead.replay.fence.inside import FenceNeeds
from playhead.replay.fence.line import FenceLine, pair

if TYPE_CHECKING:
    from playhead.replay.fence import setuid_programs
else:
    setuid_programs = Later("playhead.replay.fence.setuid_programs")  # not for root

# The variable that switches the watching of connections on (1) or off (0).
WATCH = "PLAYHEAD_WATCH"
# Best first.
KINDS = ("namespaces", "landlock")
# Another process may be started between the choice of an id and the fork, or have that id.
_FORK_ATTEMPTS = 10


class Fence:
    """A closed fence, and the process in it that waits to become the command."""

    def __init__(self, kind: str, pid: int, line: FenceLine) -> None:
        """Wait until the fence is closed. OSError: this machine does not support it."""
        self.kind = kind
        self.pid = pid
        self._line = line
        answer, handles = self._heard()
        # Folders that could not be covered by an overlay, and why.
        self.read_only: dict[str, str] = answer["read_only"]
        self._uppers: dict[str, str] = answer["uppers"]
        # Files that the fence itself put into the stage, with their state: see `composed`.
        self._copies: dict[str, list[int]] = answer["copies"]
        self._stage = handles[0] if handles else None
        # Set when the command has started: the descriptor on which its connections are announced, and a channel that
        # finds the listeners in its network; or the reason why they are not announced.
        self.announced: tuple[int, int] | None = None
        self.unwatched: str | None = None
        # Whether the command's connections are to be announced.
        self.is_watched = True
        # The command's folder, if it exists only inside the fence; None: our current folder.
        self.cwd: str | None = None

    def listen(self, port: int = 0) -> socket.socket:
        """Return a listener on a loopback port that the command sees; the launcher serves it from outside."""
        self._line.send({"do": "listen", "port": port})
        return socket.socket(fileno=self._heard()[1][0])

    def keep(self, path: str, *, writable: bool = False) -> None:
        """Show the command the real file or folder, so that a socket there can be reached."""
        self._line.send({"do": "keep", "path": os.path.realpath(path), "writable": writable})
        self._heard()

    def be_traceable(self) -> None:
        """Let processes below this one trace the command."""
        self._line.send({"do": "trace"})
        self._heard()

    def open_folder(self, path: str) -> int:
        """Return a descriptor of a folder as the command sees it; the folder is created if necessary."""
        self._line.send({"do": "open", "path": path})
        return self._heard()[1][0]

    def start(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        streams: Sequence[tuple[int, Sequence[int]]],
        mask: set[int],
        *,
        watch: bool = False,
    ) -> int:
        """Start the command in our current folder and return its pid. OSError: it cannot be executed.

        `streams`: open files, and the numbers that each gets in the command. `watch`: its connections are `announced`,
        and wait until they are answered.
        """
        cwd = self.cwd or _folder()
        order = {"do": "exec", "argv": list(argv), "env": dict(env), "cwd": cwd}
        targets = [list(numbers) for _, numbers in streams]
        self._line.send(
            {**order, "targets": targets, "mask": sorted(mask), "watch": watch},
            [handle for handle, _ in streams],
        )
        answer, handles = self._line.receive()
        if handles:
            self.announced = (handles[0], handles[1])
        elif answer is not None:
            self.unwatched = str(answer["why"])
        answer, _ = self._line.receive()
        self._line.close()
        if answer is None:
            return self.pid  # the line was closed by the exec
        os.waitpid(self.pid, 0)
        for handle in self.announced or ():
            os.close(handle)
        self.announced = None
        raise OSError(answer["errno"], answer["why"])

    def written(self) -> Iterator[str]:
        """Yield the files that the command wrote or deleted. They were in memory, and are gone afterwards."""
        if self._stage is None:
            return
        left = dict(self._copies)
        for path, upper in sorted(self._uppers.items()):
            root = f"/proc/self/fd/{self._stage}/{upper}"
            for folder, folders, files in os.walk(root):
                inner = os.path.relpath(folder, root)
                links = [one for one in folders if os.path.islink(os.path.join(folder, one))]
                for one in (*files, *links):
                    name = os.path.normpath(os.path.join(path, inner, one))
                    if left.pop(name, None) != _state(os.path.join(folder, one)):
                        yield name
        yield from left  # deleted
        os.close(self._stage)
        self._stage = None

    def abandon(self) -> None:
        """End the waiting process, for a launcher that could not call `start`."""
        self._line.close()
        os.waitpid(self.pid, 0)

    def _heard(self) -> tuple[dict[str, Any], list[int]]:
        answer, handles = self._line.receive()
        if answer is None:
            raise OSError("the process in the fence was killed")
        if not answer["ok"]:
            raise OSError(answer["errno"], answer["why"])
        return answer, handles


def _state(path: str) -> list[int]:
    seen = os.lstat(path)
    return [seen.st_size, seen.st_mtime_ns]


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "/"  # deleted: the command could not stay in it either


def build(wanted: FenceNeeds, kinds: Sequence[str] = KINDS) -> Fence:
    """Return the best fence of this machine. NoFence says why there is none."""
    if sys.platform != "linux":
        raise NoFence(f"{sys.platform} has no fence that Playhead supports.")
    reasons = []
    for kind in kinds:
        try:
            return _forked(kind, wanted)
        except OSError as error:
            reasons.append(f"{kind}: {error.strerror or error}")
    raise NoFence("; ".join(reasons))


def watched(env: Mapping[str, str]) -> Fence:
    """Return a process without a fence whose connections are announced. OSError says why that is not possible: for a
    user other than root a filter disables `sudo`, and recording never changes the program.
    """
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, f"{sys.platform} does not report connections")
    choice = env.get(WATCH)
    if choice == "0":
        raise OSError(errno.EPERM, f"{WATCH} is 0")
    if os.geteuid() and choice != "1" and not _has_no_new_privileges():
        lost = setuid_programs.privileged(env)
        if lost is not None:
            why = f"watching would take privileges from {lost}; {WATCH}=1 watches anyway"
            raise OSError(errno.EPERM, why)
    return _forked("open", FenceNeeds(own=(), unprivileged=bool(os.geteuid())))


def opened() -> Fence:
    """Return a process without a fence and without announcements, which waits to become the command and can
    be traced.
    """
    made = _forked("open", FenceNeeds(own=()))
    made.is_watched = False
    return made


def _has_no_new_privileges() -> bool:
    with open("/proc/self/status", "rb") as file:
        return b"NoNewPrivs:\t1" in file.read()


def _fork_as(wanted: int) -> int:
    """Fork. The child has this process id if it is free and the system allows it (it allows root). Scripts put `$$`
    into names of files, arguments and input, and would diverge with another id.
    """
    for _ in range(_FORK_ATTEMPTS):
        try:
            with open("/proc/sys/kernel/ns_last_pid", "wb", buffering=0) as file:
                file.write(str(wanted - 1).encode())
        except OSError:
            break
        pid = os.fork()
        if (pid or os.getpid()) == wanted:
            return pid
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    return os.fork()


def _forked(kind: str, wanted: FenceNeeds) -> Fence:
    ours, its = pair()
    pid = os.fork() if wanted.pid is None else _fork_as(wanted.pid)
    if pid == 0:
        ours.close()
        inside.become(kind, wanted, its)
    its.close()
    try:
        return Fence(kind, pid, ours)
    except OSError:
        ours.close()
        os.waitpid(pid, 0)
        raise

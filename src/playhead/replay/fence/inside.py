"""The process that enters the fence and becomes the command. Knows the order in which a fence closes; the launcher's
end is `barrier`.

This process is a fork of the launcher and not a separate program, because starting another Python would cost every
replay 30 ms. Its pid becomes the command's pid, so signals and job control work unchanged.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from playhead.host.later import Later
from playhead.replay.fence import notifications, seccomp, sock_diag
from playhead.replay.fence.kernel import be_traceable, drop_capabilities, no_new_privileges
from playhead.replay.fence.line import FenceLine
from playhead.replay.fence.seccomp import ArgumentTest, SyscallRule, refuse

if TYPE_CHECKING:
    from playhead.replay.fence import landlock, namespaces
else:
    # A recorded command is only watched: nothing is closed.
    landlock = Later("playhead.replay.fence.landlock")
    namespaces = Later("playhead.replay.fence.namespaces")

_UNIX, _INET, _INET6, _NETLINK, _ALG = 1, 2, 10, 16, 38
_STREAM, _TYPE, _TCP = 1, 0xF, 6
_FAST_OPEN = 0x20000000
# Python ignores these two signals for itself; the command would inherit that.
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
# Devices that are written to in every shell script, and terminals.
_DEVICES = (
    *("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"),
    *("/dev/tty", "/dev/pts", "/dev/ptmx"),
)
_BACKLOG = 256

# Network namespaces do not cover every family (AF_VSOCK reaches the host of a virtual machine), and io_uring creates
# sockets that no filter sees. libuv and others work without io_uring.
_CLOSED_EVERYWHERE = (
    SyscallRule("io_uring_setup", refuse(errno.ENOSYS)),
    SyscallRule(
        "socket",
        refuse(errno.EAFNOSUPPORT),
        (ArgumentTest(0, (_UNIX, _INET, _INET6, _NETLINK, _ALG), inside=False),),
    ),
)
_NO_UNIX_SOCKETS = SyscallRule("socket", refuse(errno.EACCES), (ArgumentTest(0, (_UNIX,)),))
# Shims use such a socket to talk to the sidecar. Its `connect` is announced, and the watcher connects it to the sidecar
# or refuses: see `connection_watch`. Datagram sockets need no `connect`, so they are refused.
_ANNOUNCED_UNIX_SOCKETS = SyscallRule(
    "socket",
    refuse(errno.EACCES),
    (ArgumentTest(0, (_UNIX,)), ArgumentTest(1, (_STREAM,), mask=_TYPE, inside=False)),
)
# For fences without namespaces: Landlock restricts only TCP, and not the attributes of files.
_CLOSED_BESIDE_LANDLOCK = (
    SyscallRule(
        "socket",
        refuse(errno.EACCES),
        (ArgumentTest(0, (_INET, _INET6)), ArgumentTest(1, (_STREAM,), mask=_TYPE, inside=False)),
    ),
    SyscallRule(
        "socket",
        refuse(errno.EACCES),
        (ArgumentTest(0, (_INET, _INET6)), ArgumentTest(2, (0, _TCP), inside=False)),
    ),
    # A connection that carries data in its first packet is not a `connect` to Landlock.
    *(
        SyscallRule(name, refuse(errno.EACCES), (ArgumentTest(at, (_FAST_OPEN,), mask=_FAST_OPEN),))
        for name, at in (("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3))
    ),
    *(
        SyscallRule(name, refuse(errno.EPERM))
        for name in (
            *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat"),
            *("utime", "utimes", "futimesat", "utimensat", "setxattr", "lsetxattr", "fsetxattr"),
            *("setxattrat", "removexattr", "lremovexattr", "fremovexattr", "removexattrat"),
            *("shmget", "msgget", "semget", "mq_open"),
        )
    ),
)


class FenceNeeds(NamedTuple):
    """The needs of the program in the fence."""

    # Folders that it is likely to write to.
    own: tuple[str, ...]
    # Whether something is meant to be live: then the program keeps the network.
    network: bool = False
    # Whether it has to reach Unix sockets of the launcher, as shims do.
    sockets: bool = False
    # Whether the program may lose the privileges of setuid programs: for an ordinary user a filter requires that.
    unprivileged: bool = False
    # The process id that it should have, if the system allows it.
    pid: int | None = None


def become(kind: str, wanted: FenceNeeds, line: FenceLine) -> NoReturn:
    """Close the fence, follow the launcher's messages, become the command. Never returns."""
    try:
        made = _MAKERS[kind](wanted)
        facts = {"read_only": made.read_only, "uppers": made.uppers, "copies": made.copies}
        line.send({"ok": True, **facts}, made.handles)
        while True:
            order, handles = line.receive()
            if order is None:
                break  # the launcher has exited before the command was started
            if order["do"] == "exec":
                _run(made, order, handles, line)
            line.send(*_obeyed(made, order))
    except BaseException as error:  # noqa: BLE001  whatever it is, the launcher must learn of it
        with suppress(OSError):
            line.send(_failure(error))
    os._exit(125)


class _Open:
    """An open fence: the command is only watched."""

    read_only: dict[str, str]
    uppers: dict[str, str]
    copies: dict[str, tuple[int, int]]
    handles: tuple[int, ...]
    # Whether the fence would have a hole if connections were not announced.
    needs_watcher = False

    def __init__(self, wanted: FenceNeeds) -> None:
        self.read_only, self.uppers, self.copies, self.handles = {}, {}, {}, ()
        if wanted.unprivileged:
            no_new_privileges()

    def keep(self, path: str, *, writable: bool) -> None:
        """Do nothing: every file is real."""

    def open_folder(self, path: str) -> int:
        raise OSError(errno.ENOSYS, "nothing is covered here")

    def listen(self, made: socket.socket) -> None:
        """Do nothing: every port can be reached."""

    def close(self) -> None:
        """Do nothing: nothing is closed."""


class _Namespaces(_Open):
    def __init__(self, wanted: FenceNeeds) -> None:
        self._covered = namespaces.enter(wanted.own, network=wanted.network)
        self.uppers, self.read_only = self._covered.uppers, self._covered.read_only
        self.copies = self._covered.copies
        self.handles = (self._covered.stage,)

    def keep(self, path: str, *, writable: bool) -> None:
        self._covered.keep(path, writable=writable)

    def open_folder(self, path: str) -> int:
        os.makedirs(path, exist_ok=True)
        return os.open(path, os.O_PATH | os.O_DIRECTORY)

    def listen(self, made: socket.socket) -> None:
        """Do nothing: every port of the namespace's own loopback can be reached, and no other network exists."""

    def close(self) -> None:
        drop_capabilities()
        no_new_privileges()
        if landlock.version():
            with suppress(OSError):
                landlock.scope_signals()
        with suppress(OSError):
            # 32-bit programs may make these calls: they are in the same network namespace.
            seccomp.install(seccomp.compiled(_CLOSED_EVERYWHERE, foreign=seccomp.ALLOW))


class _Landlock(_Open):
    def __init__(self, wanted: FenceNeeds) -> None:
        landlock.check()
        if wanted.network:
            raise OSError(errno.ENOSYS, "it cannot keep the network open for live calls")
        self.needs_watcher = wanted.sockets
        # Installed now and not when the command starts, so that a machine without filters is refused early.
        no_new_privileges()
        seccomp.install(seccomp.compiled(_CLOSED_EVERYWHERE, foreign=refuse(errno.ENOSYS)))
        self._folders: list[str] = []
        self._ports: list[int] = []
        super().__init__(wanted)
        self.read_only = dict.fromkeys(wanted.own, "Landlock has no overlays")

    def keep(self, path: str, *, writable: bool) -> None:
        if writable:
            self._folders.append(path)

    def open_folder(self, path: str) -> int:
        raise OSError(errno.ENOSYS, "Landlock has no overlays")

    def listen(self, made: socket.socket) -> None:
        self._ports.append(made.getsockname()[1])

    def close(self) -> None:
        drop_capabilities()
        landlock.allow_only([*self._folders, *_DEVICES], self._ports)
        sockets = _ANNOUNCED_UNIX_SOCKETS if self.needs_watcher else _NO_UNIX_SOCKETS
        rules = (sockets, *_CLOSED_BESIDE_LANDLOCK)
        seccomp.install(seccomp.compiled(rules, foreign=refuse(errno.ENOSYS)))


_MAKERS: dict[str, type[_Open]] = {
    "open": _Open,
    "namespaces": _Namespaces,
    "landlock": _Landlock,
}


def enter_namespaces(wanted: FenceNeeds, keep: Sequence[str]) -> None:
    """Close a fence around this process, and keep these folders real and writable. For a child that executes no
    command.

    OSError: this machine cannot, and the process must not be used any more.
    """
    made = _Namespaces(wanted)
    for path in keep:
        made.keep(os.path.realpath(path), writable=True)
    with suppress(OSError):
        os.chdir(
            os.getcwd()
        )  # by its path: the folder that this process is in is still the real one
    made.close()


def _obeyed(made: _Open, order: dict[str, Any]) -> tuple[dict[str, Any], tuple[int, ...]]:
    try:
        if order["do"] == "keep":
            made.keep(order["path"], writable=order["writable"])
            return {"ok": True}, ()
        if order["do"] == "trace":
            be_traceable()
            return {"ok": True}, ()
        if order["do"] == "open":
            return {"ok": True}, (made.open_folder(order["path"]),)
        listener = _listener(order["port"])
        made.listen(listener)
        return {"ok": True}, (listener.detach(),)
    except OSError as error:
        return _failure(error), ()


def _listener(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind(("127.0.0.1", port))
    made.listen(_BACKLOG)
    made.setblocking(False)
    return made


def _run(made: _Open, order: dict[str, Any], handles: list[int], line: FenceLine) -> NoReturn:
    with suppress(OSError):
        # Change to the path: the current folder of this process is still the real one.
        os.chdir(order["cwd"])
    made.close()
    for handle, targets in zip(handles, order["targets"], strict=True):
        for target in targets:
            os.dup2(handle, target, inheritable=True)
    answer, listener = _watched() if order["watch"] else ({"ok": False, "why": "not asked for"}, ())
    line.send(answer, listener)
    if made.needs_watcher and not listener:
        why = f"connections of shims cannot be announced ({answer['why']})"
        line.send({"ok": False, "errno": errno.ENOSYS, "why": why})
        os._exit(125)
    for number in _IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, order["mask"])
    argv, env = order["argv"], order["env"]
    error = _replaced(argv, env)
    if error.errno == errno.ENOEXEC:
        error = _replaced(["/bin/sh", *argv], env)  # a script without #!: shells run it like this
    line.send({**_failure(error), "not_started": True})
    os._exit(125)


def _watched() -> tuple[dict[str, Any], tuple[int, ...]]:
    """Announce connections from here on. Return the listener for the launcher, or why there is none."""
    try:
        # 32-bit programs are not watched: they would need numbers of their own.
        program = seccomp.compiled(notifications.CONNECTIONS, foreign=seccomp.ALLOW)
        ports = sock_diag.channel()
        return {"ok": True}, (seccomp.install_with_listener(program), ports.detach())
    except OSError as error:
        return _failure(error), ()


def _replaced(argv: list[str], env: dict[str, str]) -> OSError:
    """Execute the command; return the reason if that fails. The command is searched on the launcher's PATH, as a spawn
    by the kernel does: the command's own PATH begins with shims, and the command is not one of its own subprocesses.
    """
    name = argv[0]
    found: OSError = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    for folder in [""] if os.sep in name else os.get_exec_path():
        try:
            os.execve(os.path.join(folder, name), argv, env)  # noqa: S606  that is the job
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                found = error
                if error.errno != errno.EACCES:
                    break
    return found


def _failure(error: BaseException) -> dict[str, Any]:
    number = error.errno if isinstance(error, OSError) else None
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return {"ok": False, "errno": number or errno.EIO, "why": words or type(error).__name__}

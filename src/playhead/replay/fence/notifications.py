"""System calls that a filter announces before they happen. Knows the kernel's interface and socket addresses;
does not decide about a call.

The calling process waits for an answer, so the listener must answer quickly, as long as a process with that
filter lives: after the last listener has closed, its calls fail for good.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import socket
import struct
from contextlib import suppress
from typing import NamedTuple

from playhead.replay.fence.kernel import PIDFD_GETFD, call, syscall
from playhead.replay.fence.seccomp import NOTIFY, ArgumentTest, SyscallRule, number_of

_SOCKET_TYPE = 0xF  # without SOCK_CLOEXEC and SOCK_NONBLOCK
# A connection, a datagram that names its receiver, and the making of a socket for datagrams. The last one because
# `sendmsg` is not announced: its receiver is behind a pointer that a filter cannot follow, and browsers and gRPC make
# thousands of these calls a second on sockets of other kinds.
CONNECTIONS = (
    SyscallRule("connect", NOTIFY),
    SyscallRule("sendto", NOTIFY, (ArgumentTest(4, (0,), inside=False),)),
    SyscallRule(
        "socket",
        NOTIFY,
        (
            ArgumentTest(0, (socket.AF_INET, socket.AF_INET6)),
            ArgumentTest(1, (socket.SOCK_DGRAM, socket.SOCK_RAW), mask=_SOCKET_TYPE),
        ),
    ),
)
_RECEIVE, _ANSWER, _SET_FLAGS = 0xC0502100, 0xC0182101, 0x40082104
_SYNC_WAKE_UP, _CONTINUE = 1, 1
_ANNOUNCED = struct.Struct("=QII iIQ6Q".replace(" ", ""))
_LONGEST_ADDRESS = 128


class Announced(NamedTuple):
    """A system call that waits for an answer. `thread` made the call."""

    id: int
    thread: int
    number: int
    args: tuple[int, ...]


class PeerAddress(NamedTuple):
    """The address of a socket: `host` and `port` of a network, or the `path` of a Unix socket."""

    host: str = ""
    port: int = 0
    path: str = ""

    @property
    def is_loopback(self) -> bool:
        return self.host.startswith("127.") or self.host in ("::1", "0.0.0.0", "::")  # noqa: S104

    def __str__(self) -> str:
        if self.path:
            return self.path
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class CallListener:
    """The end at which the calls are announced."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._connect = number_of("connect")
        self._socket = number_of("socket")
        # Shared with forked processes, and filled by the kernel itself: if the process that received a call is killed
        # before it has answered, another one can answer. The kernel announces a call only once.
        self._received = mmap.mmap(-1, _ANNOUNCED.size)
        self._place = ctypes.addressof(ctypes.c_char.from_buffer(self._received))
        with suppress(OSError):  # since Linux 6.6: the answer is given on the same processor
            fcntl.ioctl(fd, _SET_FLAGS, _SYNC_WAKE_UP)

    def receive(self) -> Announced | None:
        """Return the next call; None: its process was killed meanwhile."""
        self._received[:] = bytes(_ANNOUNCED.size)  # the kernel wants it empty
        try:
            call("ioctl", self.fd, ctypes.c_ulong(_RECEIVE), ctypes.c_void_p(self._place))
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EINTR):
                return None
            raise
        number, thread, _, system_call, _, _, *args = _ANNOUNCED.unpack(self._received)
        return Announced(number, thread, system_call, tuple(args))

    def proceed(self, one: Announced) -> None:
        """Let the call happen."""
        self._answer(struct.pack("=QqiI", one.id, 0, 0, _CONTINUE))

    def proceed_with_last(self) -> None:
        """Let the call happen that was received last, if it still waits."""
        (number,) = struct.unpack_from("=Q", self._received)
        self._answer(struct.pack("=QqiI", number, 0, 0, _CONTINUE))

    def fail(self, one: Announced, number: int) -> None:
        """Let the call fail with this errno; 0: let it succeed without performing it."""
        self._answer(struct.pack("=QqiI", one.id, 0, -number, 0))

    def _answer(self, answer: bytes) -> None:
        with suppress(OSError):  # killed while it waited
            fcntl.ioctl(self.fd, _ANSWER, bytearray(answer))

    def address(self, one: Announced) -> PeerAddress | None:
        """Return the destination of the call; None: neither a network nor a Unix socket. OSError: it cannot be read."""
        pointer, size = (one.args[1], one.args[2]) if self.connects(one) else one.args[4:6]
        with open(f"/proc/{one.thread}/mem", "rb", buffering=0) as memory:
            raw = os.pread(memory.fileno(), min(size, _LONGEST_ADDRESS), pointer)
        return parsed(raw)

    def kind(self, one: Announced, process: int) -> tuple[bool, int]:
        """Return whether its socket is a stream socket, as for TCP, and the inode. OSError: it cannot be determined."""
        with self.socket(one, process) as same:
            return same.type == socket.SOCK_STREAM, os.fstat(same.fileno()).st_ino

    def socket(self, one: Announced, process: int) -> socket.socket:
        """Return the socket of that process, opened in this process as well."""
        handle = os.pidfd_open(process)
        try:
            return socket.socket(fileno=syscall(PIDFD_GETFD, "pidfd_getfd", handle, one.args[0], 0))
        finally:
            os.close(handle)

    def makes_socket(self, one: Announced) -> bool:
        """Return whether it makes a socket for datagrams, and so has no address."""
        return one.number == self._socket

    def connects(self, one: Announced) -> bool:
        """Return whether it is `connect`, and not a datagram with an address of its own."""
        return one.number == self._connect


def parsed(raw: bytes) -> PeerAddress | None:
    """Parse a `sockaddr` in the kernel's form."""
    if len(raw) < 2:
        return None
    family = int.from_bytes(raw[:2], "little")
    if family == socket.AF_INET and len(raw) >= 8:
        return PeerAddress(
            socket.inet_ntop(socket.AF_INET, raw[4:8]), int.from_bytes(raw[2:4], "big")
        )
    if family == socket.AF_INET6 and len(raw) >= 24:
        host = socket.inet_ntop(socket.AF_INET6, raw[8:24])
        return PeerAddress(host.removeprefix("::ffff:"), int.from_bytes(raw[2:4], "big"))
    if family == socket.AF_UNIX:
        name = raw[2:].rstrip(b"\0") if raw[2:3] == b"\0" else raw[2:].partition(b"\0")[0]
        return PeerAddress(path=os.fsdecode(name.replace(b"\0", b"@")))
    return None

"""A shim in Python for machines without a compiler: does the same as native/, but costs the start of a Python.

Run by the tool's own Python with -I and -S: it imports nothing of Playhead, and as little as possible of the
standard library. Knows the frames, pipes and signals. One thing works less well than in the native shim: a signal
that was sent to the whole process group reaches the program twice.
"""

from __future__ import annotations

import _socket
import errno
import os
import select
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn
else:
    import _signal as signal  # `signal` itself, and `typing`, would double the cost of all imports

_PASSED_ON = (
    *(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1),
    *(signal.SIGUSR2, signal.SIGALRM, signal.SIGCONT, signal.SIGWINCH),
)
_UNTOLD = (signal.SIGCONT, signal.SIGWINCH)
_GONE = select.POLLERR | select.POLLHUP | select.POLLNVAL
_CHUNK, _AT_ONCE = 65536, 4096
_SCM_RIGHTS = 1


class SidecarLine:
    """The connection to the sidecar. It is dropped at the first error, and no operation waits long."""

    def __init__(self, address: str) -> None:
        self._socket: _socket.socket | None = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            self._socket.settimeout(2)
            self._socket.connect(address)
        except OSError:
            self.drop()

    @property
    def fd(self) -> int:
        return -1 if self._socket is None else self._socket.fileno()

    def drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = None

    def tell(self, what: bytes, data: bytes, fds: tuple[int, ...] = ()) -> None:
        if self._socket is None:
            return
        said = what + len(data).to_bytes(4, "big") + data
        try:
            if fds:
                packed = b"".join(fd.to_bytes(4, sys.byteorder) for fd in fds)
                passed = [(_socket.SOL_SOCKET, _SCM_RIGHTS, packed)]
                said = said[self._socket.sendmsg([said], passed) :]
            self._socket.sendall(said)
        except OSError:
            self.drop()

    def hear(self, patience: float | None) -> tuple[bytes, bytes, int] | None:
        """Return the sidecar's next frame and a descriptor that came with it. None: there are no more frames."""
        if self._socket is None:
            return None
        self._socket.settimeout(patience)
        try:
            head, passed, _, _ = self._socket.recvmsg(5, _socket.CMSG_SPACE(4))
            while 0 < len(head) < 5:
                head += self._socket.recv(5 - len(head)) or b"\0" * 5
            data = b""
            size = int.from_bytes(head[1:5], "big")
            while len(data) < size and (more := self._socket.recv(size - len(data))):
                data += more
        except OSError:
            return None
        fd = int.from_bytes(passed[0][2][:4], sys.byteorder) if passed else -1
        return (head[:1], data, fd) if len(head) == 5 and len(data) == size else None


class Streams:
    """The kinds of stdin, stdout and stderr; native/streams.c gives the reasons."""

    def __init__(self) -> None:
        self.closed: list[int] = []
        self.kinds = [self._kind(fd) for fd in range(3)]
        shared = self.kinds[1] in ("pipe", "file") and self.kinds[1] == self.kinds[2]
        if shared and os.path.sameopenfile(1, 2):
            self.kinds[2] = "stdout"
        for fd in (1, 2):
            if self.kinds[0] == self.kinds[fd] == "pipe" and os.path.sameopenfile(0, fd):
                self.kinds[0] = self.kinds[fd] = "device"

    def _kind(self, fd: int) -> str:
        try:
            mode = os.fstat(fd).st_mode
        except OSError:
            os.open(os.devnull, os.O_RDWR)
            self.closed.append(fd)
            return "inherited" if fd == 0 and _is_callers(is_open=False) else "closed"
        if fd == 0 and _is_callers(is_open=True):
            return "inherited"
        if stat.S_ISCHR(mode) and os.fstat(fd).st_rdev == os.stat(os.devnull).st_rdev:
            return "null"
        if stat.S_ISREG(mode):
            return "file"
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            return "pipe"
        return "tty" if os.isatty(fd) else "device"


def _is_callers(*, is_open: bool) -> bool:
    """Return whether the caller has the same stdin. `is_open`: ours is open."""
    try:
        return os.path.samestat(os.fstat(0), os.stat(f"/proc/{os.getppid()}/fd/0")) and is_open
    except OSError as error:
        return error.errno != errno.ENOENT or not is_open  # ENOENT: the caller's stdin is closed


class StreamPump:
    """Copies bytes from one descriptor to another, and reports them to the sidecar."""

    def __init__(self, standard: int, source: int, sink: int, line: SidecarLine) -> None:
        self.standard, self.source, self.sink, self._line = standard, source, sink, line
        self.held = b""
        self.is_open = True

    def end(self, mark: str = "") -> None:
        if mark:
            self._line.tell(b"M", mark.encode())
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (self.source, self.sink):
            if fd > 2:
                os.close(fd)
        for fd in (1, 2) if self.standard == 1 and os.path.sameopenfile(1, 2) else (self.standard,):
            os.dup2(null, fd)
        os.close(null)
        self.is_open = False

    def lose(self) -> None:
        """Stop: the reader has closed its end."""
        self.held = b""
        self.end(f"closed {('stdout', 'stderr')[self.standard - 1]}" if self.standard else "")

    def pull(self) -> bool:
        """Read. Return whether there were bytes."""
        try:
            self.held = os.read(self.source, _CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            self.held = b""
        if not self.held:
            self.end("" if self.standard else "closed stdin")
        return bool(self.held)

    def push(self) -> None:
        """Write as much as fits for sure: other processes share the descriptor, so it may block."""
        try:
            sent = os.write(self.sink, self.held[:_AT_ONCE])
        except OSError:
            self.lose()
            return
        self._line.tell(b"IOE"[self.standard : self.standard + 1], self.held[:sent])
        self.held = self.held[sent:]


class SignalReader:
    """Makes signals readable as numbers. Signals that the caller ignores stay ignored."""

    def __init__(self) -> None:
        self.fd, rung = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(rung, False)
        signal.set_wakeup_fd(rung, warn_on_full_buffer=False)
        for number in (*_PASSED_ON, signal.SIGCHLD):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, lambda *_: None)

    def came(self) -> bytes:
        try:
            return os.read(self.fd, 256)
        except BlockingIOError:
            return b""

    def ring_again(self) -> None:
        """Send the signals that arrived too early again, for the program that replaces this process."""
        for number in self.came():
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)


class Real:
    """The real program, from its start to its end."""

    def __init__(self, line: SidecarLine, streams: Streams, bell: SignalReader) -> None:
        self._line, self._streams, self._bell = line, streams, bell
        self._pumps: list[StreamPump] = []

    def run(self, real: str, argv: list[str], request: bytes) -> int:
        theirs = self._open()
        self._pid = os.fork()
        if self._pid == 0:
            for fd, end in theirs.items():
                os.dup2(end, fd)
            for name, value in zip(("PARENT", "LANE"), request.split(b"\0")[:2], strict=False):
                if value:
                    os.environb[b"PLAYHEAD_" + name.encode()] = value
            become(real, argv, self._streams.closed)
        for end in set(theirs.values()):
            os.close(end)
        while True:
            self._turn()
            for number in self._bell.came():
                if number == signal.SIGCHLD and (code := self._looked_after()) is not None:
                    self._drain()
                    self._line.tell(b"X", str(code).encode())
                    self._leave_somebody()
                    self._line.hear(2)  # the caller's next step must come after our end on the tape
                    return code
                if number != signal.SIGCHLD:
                    self._pass_on(number)

    def _open(self) -> dict[int, int]:
        theirs: dict[int, int] = {}
        for fd in range(3):
            if self._streams.kinds[fd] == "pipe":
                reads, writes = _joined(fd)
                theirs[fd] = writes if fd else reads
                os.set_blocking(reads if fd else writes, False)
                self._pumps.append(StreamPump(fd, reads if fd else 0, fd or writes, self._line))
        if self._streams.kinds[2] == "stdout":
            theirs |= {2: theirs[1]} if 1 in theirs else {}
        return theirs

    def _turn(self) -> bool:
        """Wait for an event, and handle it. False: no stream is left."""
        poll = select.poll()
        poll.register(self._bell.fd, select.POLLIN)
        pumps = [pump for pump in self._pumps if pump.is_open]
        for pump in pumps:
            if not pump.held:
                poll.register(pump.source, select.POLLIN)
            poll.register(pump.sink, select.POLLOUT if pump.held else 0)
        ready = dict(poll.poll())
        for pump in pumps:
            if pump.held and pump.sink in ready:
                pump.push()
            elif not pump.held and ready.get(pump.sink, 0) & _GONE:
                pump.lose()
            elif pump.source in ready:
                pump.pull()
        return bool(pumps)

    def _pass_on(self, number: int) -> None:
        if number not in _UNTOLD:
            self._line.tell(b"S", str(number).encode())
        try:
            from_terminal = os.tcgetpgrp(0) == os.getpgrp()
        except OSError:
            from_terminal = False
        if not (from_terminal and number in (signal.SIGINT, signal.SIGQUIT)):
            os.kill(self._pid, number)

    def _looked_after(self) -> int | None:
        found, status = os.waitpid(self._pid, os.WNOHANG | os.WUNTRACED)
        if found and os.WIFSTOPPED(status):
            os.kill(os.getpid(), signal.SIGSTOP)
            os.kill(self._pid, signal.SIGCONT)
            return None
        return os.waitstatus_to_exitcode(status) if found else None

    def _drain(self) -> None:
        for pump in self._pumps:
            if pump.standard == 0 and pump.is_open:
                pump.end()
            while pump.is_open and (pump.held or pump.pull()):
                select.select([], [pump.sink], [])
                pump.push()

    def _leave_somebody(self) -> None:
        """Leave a process behind that passes on the output of children which the program left behind."""
        if any(pump.is_open for pump in self._pumps) and os.fork() == 0:
            self._line.drop()
            while any(pump.is_open for pump in self._pumps) and self._turn():
                self._bell.came()
            os._exit(0)


def _joined(like: int) -> tuple[int, int]:
    if not stat.S_ISSOCK(os.fstat(like).st_mode):
        return os.pipe()
    one, other = _socket.socketpair()
    return one.detach(), other.detach()


def play(line: SidecarLine, control: int, bell: SignalReader) -> int:
    """Stand in for a taped program: the sidecar supplies its streams."""
    poll = select.poll()
    for fd in (line.fd, control, bell.fd):
        poll.register(fd, select.POLLIN)
    while True:
        ready = dict(poll.poll())
        for number in bell.came():
            if number not in (*_UNTOLD, signal.SIGCHLD):
                line.tell(b"S", str(number).encode())
        if line.fd in ready:
            heard = line.hear(None)
            what, data, _ = heard or (b"F", b"125\0the replay has ended before this program.", -1)
            if what == b"F":
                refuse(data)
            return -int(data) if what == b"D" else 0
        if control in ready:
            order = os.read(control, 256).decode()
            if not order:
                poll.unregister(control)
            elif "kill -" in order:
                return -int(order.partition("kill -")[2].split()[0])
            else:
                return int(order.split()[1])


def become(real: str, argv: list[str], closed: list[int]) -> NoReturn:
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # Python ignores them in its own process
    for fd in closed:
        os.close(fd)
    try:
        try:
            os.execv(real, argv)  # noqa: S606  intended
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            os.execv("/bin/sh", ["sh", real, *argv[1:]])  # noqa: S606  as shells do
    except OSError as error:
        code = 127 if isinstance(error, FileNotFoundError) else 126
        refuse(f"{code}\0cannot run {argv[0]}: {error.strerror}.".encode())


def refuse(reason: bytes) -> NoReturn:
    """Exit with the code and the reason that the sidecar sent."""
    code, _, why = reason.partition(b"\0")
    os.write(2, b"playhead: " + why + b"\n")
    os._exit(int(code))


def end_as(code: int) -> NoReturn:
    if code < 0:
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)


def find_real(name: str, folder: str, path: str) -> str:
    for place in (*os.environ.get("PATH", "").split(":"), *path.split(":")):
        found = os.path.join(place or ".", name)
        if place != folder and os.access(found, os.X_OK) and os.path.isfile(found):
            return found
    return ""


def is_taped_already(launcher: str) -> bool:
    parent, _, seq = os.environ.get("PLAYHEAD_PARENT", "").rpartition(":")
    ours = str(os.getppid())
    return ours == launcher or (parent.partition("-")[0] == ours and seq not in ("", "0"))


def main(stand: str, words: list[str]) -> NoReturn:
    fields = [os.fsdecode(one) for one in bytes.fromhex(stand).split(b"\0")]
    mode, name, folder, address, path, real, launcher = fields[:7]
    real = real or find_real(name, folder, path)
    argv = [name, *words]
    if is_taped_already(launcher):
        become(real, argv, [])
    streams, bell, line = Streams(), SignalReader(), SidecarLine(address)
    kinds = ("file",) if mode == "record" else ("file", "pipe", "device")
    passed = tuple(fd for fd in range(3) if streams.kinds[fd] in kinds)
    here = [os.environ.get(f"PLAYHEAD_{one}", "") for one in ("RUN", "PARENT", "LANE")]
    asked = [str(os.getpid()), str(os.getppid()), "path", name, real, os.getcwd(), *here]
    asked += [*streams.kinds, "".join(map(str, passed)), str(len(argv)), *argv]
    asked += [f"{key}={value}" for key, value in os.environ.items()]
    line.tell(b"C", b"".join(os.fsencode(word) + b"\0" for word in asked), passed)
    answer = line.hear(5 if mode == "record" else None)
    if answer is None and mode == "replay":
        refuse(f"125\0{name}: the replay has ended; nothing was run.".encode())
    if answer is None:
        bell.ring_again()
        become(real, argv, streams.closed)
    what, data, control = answer
    if what == b"R":
        end_as(Real(line, streams, bell).run(real, argv, data))
    if what == b"P":
        end_as(play(line, control, bell))
    refuse(data)

"""The process that watches the connections of a command's process tree. Knows `/proc` and seccomp notifications;
`connections` judges what a connection means for the run.

A process and not a thread of the launcher: the calls must be answered as long as any process of the tree
lives, whatever happens to the launcher.
"""

from __future__ import annotations

import errno
import json
import os
import select
import socket
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import NamedTuple

from playhead import clock
from playhead.host import descriptors
from playhead.launch.follow.roles import agent_in, role_of
from playhead.launch.sidecar.call_guard import watch_guarded
from playhead.launch.sidecar.proc_facts import (
    ancestors_of,
    entries_of,
    is_socket_path,
    open_files_of,
    process_of,
)
from playhead.replay.fence import sock_diag
from playhead.replay.fence.notifications import Announced, CallListener, PeerAddress

_DRAIN = b"d"
_MOST_TIMES = 10_000
# Enough bytes for an interpreter, its options and a script.
_MOST_WORDS = 16
_DNS = 53
# Used instead of an address if datagrams were sent by a system call that is not announced.
UNSEEN_ADDRESS = "addresses that were not seen"
_LINGER_NS = 150_000_000
_RUN, _PARENT = b"PLAYHEAD_RUN=", b"PLAYHEAD_PARENT="
# A process call whose number is not known.
_SOME_CALL = b"some:call"
# Name services and logs, which the C library contacts for every program.
_OF_THE_SYSTEM = ("/nscd/", "/systemd/", "/dev/log", "/dbus/", "/resolve", "/sssd/", "/avahi")


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenConnection:
    """One program's connections to one place.

    `how`: `inside` (a listener of the tree, or our own proxy), `refused` (nothing listens there), `out`,
    `datagram` (sent without a connection), or `daemon` (a Unix socket of a process outside the tree).
    """

    program: str
    pid: int
    to: str
    port: int
    how: str
    # Whether it is the proxy of this run.
    proxied: bool
    # The event that started the process, as its environment says.
    parent: str | None
    # How often, and at which times (monotonic ns).
    count: int = 1
    times: tuple[int, ...] = ()
    # What the program is by its command line: `agent:claude`, `runner`, `script`, …
    role: str = "other"


class WatchedTree(NamedTuple):
    """The processes that are watched."""

    # The run's folder, which their environments name.
    run: str
    # The command's pid.
    root: int
    # Ports of our proxy.
    ports: frozenset[int]
    # The folder of the run's shims.
    shims: str | None
    # The tree has its own network, so everything that listens there belongs to the tree.
    fenced: bool
    # Unix sockets can be reached from the fence: only those of the shims may be.
    guards_sockets: bool = False


class Watching:
    """The launcher's end of the watcher."""

    def __init__(self, pid: int, ask: int, hear: int) -> None:
        self.pid = pid
        self._ask = ask
        self._hear = hear

    def dismiss(self) -> list[SeenConnection] | None:
        """Return all connections so far. None: they could not be watched. The watcher stays for the remaining
        processes.
        """
        try:
            os.write(self._ask, _DRAIN)
            with open(self._hear, "rb") as answers:
                found = json.loads(answers.read() or b"null")
        except (OSError, ValueError):
            return None  # the watcher was killed
        finally:
            os.close(self._ask)
        return None if found is None else [SeenConnection(**one) for one in found]


def post(announced: tuple[int, int], tree: WatchedTree) -> Watching:
    """Fork the process that watches the `announced` calls (see `Fence`)."""
    ask, hear = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            # A grandchild: the launcher need not wait for it, because init reaps it when it ends.
            if os.fork() == 0:
                descriptors.keep_only(*announced, ask[0], hear[1])
                listener = CallListener(announced[0])
                seen = _Seen(listener, announced[1], tree)
                watch = _Watcher(seen, ask[0], hear[1]).watch
                if tree.fenced:
                    watch()  # a replay fails closed: without a watcher its connections fail
                else:
                    watch_guarded(listener, watch, (announced[1], ask[0], hear[1]))
        finally:
            os._exit(0)
    for handle in (*announced, ask[0], hear[1]):
        os.close(handle)
    os.waitpid(pid, 0)
    return Watching(pid, ask[1], hear[0])


class _Watcher:
    """Answers calls until the last process with the filter has ended."""

    def __init__(self, seen: _Seen, asked: int, answer: int) -> None:
        self._seen = seen
        self._asked = asked
        self._answer = answer
        self._reporting = True

    def watch(self) -> None:
        poll = select.poll()
        poll.register(self._seen.listener.fd, select.POLLIN)
        poll.register(self._asked, select.POLLIN)
        alive = True
        while alive:
            ready = dict(poll.poll())
            calls = ready.get(self._seen.listener.fd, 0)
            if calls & select.POLLIN:
                self._seen.look()
            elif calls:
                alive = False
            if self._asked in ready and not calls & select.POLLIN:
                poll.unregister(self._asked)
                question = os.read(self._asked, 1)
                alive = alive and (question != _DRAIN or self._lingered(poll))
                self._report(question)
        if self._reporting:
            poll.unregister(self._seen.listener.fd)
            poll.poll()
            self._report(os.read(self._asked, 1))

    def _lingered(self, poll: select.poll) -> bool:
        """Watch the processes that the command left behind a little longer: a daemon often connects just after its
        parent has ended. Return whether processes are left.
        """
        latest = clock.mono_ns() + _LINGER_NS
        while (left := latest - clock.mono_ns()) > 0:
            calls = dict(poll.poll(left // 1_000_000 + 1)).get(self._seen.listener.fd, 0)
            if calls & select.POLLIN:
                self._seen.look()
            elif calls:
                return False
        return True

    def _report(self, question: bytes) -> None:
        self._reporting = False
        self._seen.keeps = False
        if question == _DRAIN:
            with suppress(OSError), open(self._answer, "wb") as out:
                out.write(json.dumps(self._seen.rows()).encode())
        else:
            os.close(self._answer)


class _Seen:
    """The connections so far."""

    def __init__(self, listener: CallListener, channel: int, tree: WatchedTree) -> None:
        self.listener = listener
        self._channel = socket.socket(fileno=channel)
        # Whether the run still needs the connections.
        self.keeps = True
        self._tree = tree
        self._rows: defaultdict[SeenConnection, list[int]] = defaultdict(list)
        self._blind = False
        # Listeners → whether they are the tree's own.
        self._owned: dict[frozenset[int], bool] = {}
        self._processes: dict[tuple[int, str], _Process] = {}
        # Datagram sockets: how many each process made, and the inodes of those whose use was announced.
        self._made: defaultdict[SeenConnection, list[int]] = defaultdict(list)
        self._used: set[int] = set()

    def look(self) -> None:
        """Note the next call, then let it happen. In the other order, the process, its peer and the call that it
        belongs to might be gone already.
        """
        one = self.listener.receive()
        if one is None or (self._tree.guards_sockets and self._is_guarded(one)):
            return
        if self.keeps:
            try:
                self._note(one)
            except (OSError, ValueError):
                self._blind = self._blind or os.path.exists(f"/proc/{one.thread}")
        self.listener.proceed(one)

    def _is_guarded(self, one: Announced) -> bool:
        """Answer a call that concerns a Unix socket: connect the shims to the sidecar, refuse everything else.

        The connection is made here and not by the caller: between our look at the address and the caller's own
        call, another of its threads could replace the address.
        """
        if self.listener.makes_socket(one):
            return False
        try:
            address = self.listener.address(one)
            if address is not None and not address.path:
                return False
            shims = self._tree.shims
            if address is None or shims is None or not address.path.startswith(f"{shims}/"):
                raise PermissionError(errno.EACCES, "not a socket of the shims")
            with self.listener.socket(one, process_of(one.thread)) as same:
                # With the caller's own socket. The listener is ours, so this does not wait.
                same.connect(os.path.realpath(address.path))
            self.listener.fail(one, 0)
        except (OSError, ValueError) as error:
            self.listener.fail(one, (isinstance(error, OSError) and error.errno) or errno.EACCES)
        return True

    def rows(self) -> list[dict[str, object]] | None:
        if self._blind:
            return None
        return [
            {**asdict(row), "count": len(times), "times": times[:_MOST_TIMES]}
            for row, times in [*self._rows.items(), *self._unexplained()]
        ]

    def _unexplained(self) -> Iterator[tuple[SeenConnection, list[int]]]:
        """Return datagram sockets without a `connect` or `sendto` to an address: Node, QUIC clients and other
        programs use `sendmsg`. They are counted, because a socket has no number before it exists.
        """
        left = sum(map(len, self._made.values())) - len(self._used)
        for row, times in self._made.items():
            if left > 0:
                yield row, times[:left]
                left -= len(times)

    def _note_socket(self, one: Announced, at: int) -> None:
        pid = process_of(one.thread)
        program = os.readlink(f"/proc/{pid}/exe")
        process = self._process(pid, program)
        row = SeenConnection(
            program=program, pid=pid, to=UNSEEN_ADDRESS, port=0, how="datagram", proxied=False,
            parent=process.parent, role=process.role,
        )  # fmt: skip
        self._made[row].append(at)

    def _note(self, one: Announced) -> None:
        at = clock.mono_ns()
        if self.listener.makes_socket(one):
            self._note_socket(one, at)
            return
        address = self.listener.address(one)
        if address is None or (address.path and not self._is_daemon(address.path)):
            return
        pid = process_of(one.thread)
        is_datagram = False
        if not address.path:
            is_stream, inode = self.listener.kind(one, pid)
            is_datagram = not is_stream
            if is_datagram:
                self._used.add(inode)
        # A connected datagram socket has sent nothing yet: the C library connects one to choose an address. The C
        # library also looks up names for every program.
        if is_datagram and (self.listener.connects(one) or address.port == _DNS):
            return
        program = os.readlink(f"/proc/{pid}/exe")
        process = self._process(pid, program)
        proxied = address.is_loopback and address.port in self._tree.ports and not is_datagram
        row = SeenConnection(
            program=program,
            pid=pid,
            to=str(address),
            port=address.port,
            how="datagram" if is_datagram else "inside" if proxied else self._how(address),
            proxied=proxied,
            parent=process.parent,
            role=process.role,
        )
        self._rows[row].append(at)

    def _is_daemon(self, path: str) -> bool:
        ours = path.startswith(tuple(filter(None, (self._tree.shims, self._tree.run))))
        known = ours or any(one in path for one in _OF_THE_SYSTEM)
        return path.startswith("/") and not known and is_socket_path(path)

    def _how(self, address: PeerAddress) -> str:
        if address.path and not self._tree.fenced:
            # A recorded program may use the daemons of its user as always; a replay cannot answer for them.
            found = sock_diag.bound_to(address.path)
            return "inside" if not found or self._owns(found) else "daemon"
        if address.path or not address.is_loopback:
            return "out"
        found = sock_diag.listeners(self._channel, address.port)
        if not found:
            return "refused"
        if self._tree.fenced:
            return "inside"
        if found not in self._owned:
            self._owned[found] = self._owns(found)
        return "inside" if self._owned[found] else "out"

    def _owns(self, inodes: frozenset[int]) -> bool:
        """Return whether a process of the tree listens there."""
        names = {f"socket:[{inode}]" for inode in inodes}
        for word in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError):
                pid = int(word)
                process = self._process(pid, os.readlink(f"/proc/{pid}/exe"))
                if process.is_member and names & set(open_files_of(pid)):
                    return True
        return False

    def _process(self, pid: int, program: str) -> _Process:
        key = (pid, program)
        if key not in self._processes:
            self._processes[key] = self._examined(pid)
        return self._processes[key]

    def _examined(self, pid: int) -> _Process:
        entries = entries_of(pid, "environ")
        parent = next((one[len(_PARENT) :] for one in entries if one.startswith(_PARENT)), None)
        ours = _RUN + os.fsencode(self._tree.run) in entries or self._tree.root in ancestors_of(pid)
        if parent is None and self._is_in_call(pid):
            parent = _SOME_CALL
        argv = [os.fsdecode(one) for one in entries_of(pid, "cmdline")[:_MOST_WORDS] if one]
        if len(argv) == 1:
            argv = argv[0].split()  # a title: npm calls itself `npm run agent`
        agent = agent_in(argv) if argv else None
        return _Process(
            is_member=ours,
            parent=None if parent is None else os.fsdecode(parent),
            role=role_of(argv).value if agent is None else f"agent:{agent}",
        )

    def _is_in_call(self, pid: int) -> bool:
        """Return whether a program without its environment (`env -i curl`) runs below a shim, which waits for the
        program of its process call.
        """
        shims = self._tree.shims
        for one in ancestors_of(pid) if shims is not None else ():
            with suppress(OSError):
                if os.readlink(f"/proc/{one}/exe").startswith(f"{shims}/"):
                    return True
        return False


class _Process(NamedTuple):
    """The facts about a process: whether it belongs to the run, the event that started it, and its role."""

    is_member: bool
    parent: str | None
    role: str

"""Stop a connection or a process that no hook has seen. Knows Python's audit events; does not know any library.

An audit hook sees every connection and every process that Python code makes, and can only let it pass or raise. It does
not see actions of C and Rust code: the kernel's fence stops those (`barrier`). The audit hook is still useful, because
it knows the line of code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from socket import gethostname
from typing import TYPE_CHECKING, Any

from playhead.host import own_listeners
from playhead.host.later import Later
from playhead.recording import deck, lanes, where
from playhead.replay.modes.taped_mode import ReplayMode

if TYPE_CHECKING:
    from playhead.replay.report import divergence
    from playhead.replay.report.divergence import Parting
else:
    divergence = Later("playhead.replay.report.divergence")  # most replays have none

# True for the replay's own actions.
_allowed: ContextVar[bool] = ContextVar("playhead_allowed", default=False)

_LOOKUPS = frozenset(
    {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"}
)
_SENDS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_STARTS = frozenset(
    {"subprocess.Popen", "os.posix_spawn", "os.exec", "os.system", "os.spawn", "pty.spawn"}
)
_WATCHED = _LOOKUPS | _SENDS | _STARTS | {"socket.bind"}

# Sockets of `multiprocessing` between the processes of the program.
_OF_THE_PROGRAM = ("pymp-", "\0listener-")


@contextmanager
def allowed() -> Iterator[None]:
    """Allow the actions inside the block: they belong to the replay itself."""
    token = _allowed.set(True)
    try:
        yield
    finally:
        _allowed.reset(token)


class Guard:
    """Stops actions that are not on the tape. `is_hooked`: whether a hook requested the action; hooks start
    stand-ins for taped processes and let real calls through.
    """

    def __init__(self, mode: ReplayMode, is_hooked: Callable[[], bool]) -> None:
        self._mode = mode
        self._is_hooked = is_hooked
        # Sockets in the file system that the program itself listens on.
        self._bound: set[str] = set()

    def look_at(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "socket.bind":
            self._bound.add(_path(args[1]))
        elif not self._is_fine(event, args):
            raise self._mode.part(self._parting(event, args))

    def _is_fine(self, event: str, args: tuple[Any, ...]) -> bool:
        if _allowed.get() or self._is_hooked() or _is_live(event):
            return True
        if event in _LOOKUPS:
            return _is_known(_host(args[0]))
        if event not in _SENDS:
            return False
        if own_listeners.has(args[1]) or args[1] is None:
            return True  # inside the program; or a message over a socket that is connected already
        path = _path(args[1])
        return bool(path) and (path in self._bound or any(one in path for one in _OF_THE_PROGRAM))

    def _parting(self, event: str, args: tuple[Any, ...]) -> Parting:
        boundary = "process" if event in _STARTS else "http"
        what = _command(event, args) if event in _STARTS else _peer(event, args)
        at = where.asker(4)
        place = f"{where.shown(at.f_code.co_filename)}:{at.f_lineno} {at.f_code.co_name}"
        lane = lanes.current.get().name
        return divergence.Parting(
            kind="leak",
            boundary=boundary,
            name=what,
            lane=lane,
            at=place,
            detail=f"The program made a call that no hook covers: {what}, at {place} (lane {lane}). "
            "The tape has no answer for it, so it was stopped.",
            advice=f"Make it a tool (`@playhead.tool`), so that its answers are taped; or let "
            f"{boundary} go live: `--live {boundary}`.",
            extra={"event": event},
        )


def _is_live(event: str) -> bool:
    """Return whether this belongs to a call that the user allowed to be live: inside it or, because another thread may
    make its connection, while a call of its kind is in progress.
    """
    open_deck = deck.active()
    if open_deck is None or not open_deck.live:
        return False
    here = lanes.enclosing.get()
    kinds = ("process",) if event in _STARTS else ("http", "llm", "mcp")
    return any(one.seq == here or one.call.boundary in kinds for one in list(open_deck.live))


def _path(address: Any) -> str:
    """Return the path of a socket in the file system; empty for a network address."""
    if isinstance(address, bytes):
        return address.decode("utf-8", "surrogateescape")
    return address if isinstance(address, str) else ""


def _peer(event: str, args: tuple[Any, ...]) -> str:
    if event in _LOOKUPS:
        return f"look up {_host(args[0])}"
    address = args[1]
    verb = "connect to" if event == "socket.connect" else "send to"
    if isinstance(address, tuple) and len(address) >= 2:
        return f"{verb} {address[0]}:{address[1]}"
    return f"{verb} {_path(address) or repr(address)}"


def _host(asked: Any) -> str:
    name = asked[0] if isinstance(asked, tuple) and asked else asked
    return _text(name) if name else ""


def _is_known(host: str) -> bool:
    """Return whether a host needs no resolver: an address, this machine, or an empty name (where to listen)."""
    return not host or host in ("localhost", gethostname()) or _is_number(host)


def _is_number(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdigit()


def _command(event: str, args: tuple[Any, ...]) -> str:
    words: Any = args[0] if event == "os.system" else args[1] if len(args) > 1 else args[0]
    if event == "os.spawn":
        words = args[2]
    if isinstance(words, (list, tuple)):
        words = " ".join(map(_text, words))
    return f"run `{_text(words)[:120]}`"


def _text(word: Any) -> str:
    return word.decode("utf-8", "replace") if isinstance(word, bytes) else str(word)


_guard: Guard | None = None
_listening = False


def begin(mode: ReplayMode, is_hooked: Callable[[], bool]) -> None:
    global _guard, _listening  # noqa: PLW0603  an audit hook stays as long as the process
    _guard = Guard(mode, is_hooked)
    if not _listening:
        sys.addaudithook(_hear)
        _listening = True


def end() -> None:
    global _guard  # noqa: PLW0603  one slot a process
    _guard = None


def _hear(event: str, args: tuple[Any, ...]) -> None:
    guard = _guard
    if guard is not None and event in _WATCHED:
        guard.look_at(event, args)

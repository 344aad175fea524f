"""Addresses that this process listens on: a connection to them stays inside the program."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_LOCAL = frozenset({"127.0.0.1", "::1", "localhost", "0.0.0.0", "::"})  # noqa: S104  compared, not bound

# Whether the whole process is recorded. A block of code that is recorded (`playhead.record()`) may call a server of the
# same process that runs outside of the block.
is_whole_program = False
# Whether requests may stay inside the program: a variable, because it is read for every request.
may_serve_itself = False

_ports: set[int] = set()
_paths: set[Any] = set()


def has(address: Any) -> bool:
    """Return whether this process listens on the address."""
    if isinstance(address, tuple) and len(address) >= 2:
        return address[0] in _LOCAL and address[1] in _ports
    return isinstance(address, (str, bytes)) and address in _paths


def serves(url: str) -> bool:
    """Return whether a request to this URL stays inside the program. Its calls are then on the tape, not the request: a
    replay makes the request again, so that the server makes its calls.
    """
    host, _, port = url.partition("://")[2].partition("/")[0].rpartition(":")
    return port.isdecimal() and has((host.rpartition("@")[2].strip("[]"), int(port)))


def around_listen(original: Callable[..., None]) -> Callable[..., None]:
    """Return a replacement for `socket.socket.listen` that notes the address, for `Patches.replace`."""

    def listen(self: Any, *backlog: int) -> None:
        original(self, *backlog)
        try:
            address = self.getsockname()
        except OSError:
            return
        add(address)

    return listen


def add(address: Any) -> None:
    """Note that this process listens on the address."""
    global may_serve_itself  # noqa: PLW0603  one set of listeners a process
    if isinstance(address, tuple):
        _ports.add(address[1])
        may_serve_itself = is_whole_program
    else:
        _paths.add(address)

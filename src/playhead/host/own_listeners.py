"""Addresses that this process listens on: a connection to them stays inside the program."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_LOCAL = frozenset({"127.0.0.1", "::1", "localhost", "0.0.0.0", "::"})  # noqa: S104  compared, not bound

_ports: set[int] = set()
_paths: set[Any] = set()


def has(address: Any) -> bool:
    """Return whether this process listens on the address."""
    if isinstance(address, tuple) and len(address) >= 2:
        return address[0] in _LOCAL and address[1] in _ports
    return isinstance(address, (str, bytes)) and address in _paths


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
    if isinstance(address, tuple):
        _ports.add(address[1])
    else:
        _paths.add(address)

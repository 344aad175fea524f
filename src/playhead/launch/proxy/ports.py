"""The ports of the proxy, taken before the command starts. Knows sockets and the command's environment; not
HTTP, and not which process serves the ports.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence

from playhead.launch.proxy import switches
from playhead.launch.proxy.routes import Detour, Origin, addresses, detours, origins, through

_BACKLOG = 256


def listen(port: int = 0, host: str = "127.0.0.1") -> socket.socket:
    """A listener on the loopback; 0: any free port. OSError: the port is taken."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(_BACKLOG)
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    return made


class ProxyPorts:
    """One listener for each origin that the command is likely to call. The command's environment and command
    line are made from their numbers before anything serves them: clients wait in the backlog.
    """

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        listen: Callable[[], socket.socket] = listen,
    ) -> None:
        """`listen` makes a listener that the command can reach. OSError: there is no free port."""
        found = addresses(env)
        self.env = dict(env)
        self.listeners: dict[Origin, socket.socket] = {}
        for origin in origins([*found.values(), *switches.addresses_in(command, env)]):
            self.listeners[origin] = listen()
        self._ports = {origin: one.getsockname()[1] for origin, one in self.listeners.items()}
        self.numbers = frozenset(self._ports.values())
        self.detours: dict[str, Detour] = detours(env, found, self._ports)
        # The command with the addresses in its arguments replaced by those of the proxy.
        self.command = switches.turned(command, env, self._turn)

    def _turn(self, url: str) -> str:
        return through(url, self._ports) or url

    def close(self) -> None:
        for listener in self.listeners.values():
            listener.close()

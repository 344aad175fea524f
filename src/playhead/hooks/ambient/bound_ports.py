"""Record the ports that the system chooses for a server (`bind` to port 0); a replay binds the recorded ports.

The ports must be equal because programs print their address and send it to others. Inside the fence of a replay every
port is free. Without the fence another program may hold the port; then the system chooses a new one. Knows
`socket.bind`.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from types import ModuleType
from typing import Any

from playhead.hooks.guest import Patches, need
from playhead.recording import ambient


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is socket."""
    need(module.socket, "bind", "getsockname")
    patches.replace(module.socket, "bind", _bind)


def _bind(original: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    def bind(self: Any, address: Any, /) -> None:
        is_chosen = (
            self.family in (socket.AF_INET, socket.AF_INET6)
            and isinstance(address, tuple)
            and len(address) > 1
            and address[1] == 0
        )
        if not is_chosen:
            return original(self, address)
        bound = False

        def live() -> int:
            nonlocal bound
            original(self, address)
            bound = True
            return int(self.getsockname()[1])

        port = ambient.read("port", live)
        if bound:
            return None
        try:
            return original(self, (address[0], port, *address[2:]))
        except (OSError, OverflowError, TypeError):
            return original(self, address)

    return bind

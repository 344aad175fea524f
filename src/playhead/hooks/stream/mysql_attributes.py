"""Record the process id that MySQL clients send when they log in. A replay sends the recorded one, because the
conversation is compared byte by byte. Knows PyMySQL and aiomysql.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.hooks.guest import Patches, need
from playhead.recording import ambient

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

_PID = "_pid"


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is pymysql.connections."""
    need(module.Connection, "connect", "_request_authentication")
    patches.replace(module.Connection, "connect", _connect)


def hook_aiomysql(module: ModuleType, patches: Patches) -> None:
    """`module` is aiomysql.connection."""
    need(module.Connection, "_connect")
    patches.replace(module.Connection, "_connect", _connect)


def _connect(original: Callable[..., Any]) -> Callable[..., Any]:
    def connect(self: Any, *args: Any, **options: Any) -> Any:
        attributes = self.__dict__.get("_connect_attrs")
        if attributes and _PID in attributes:
            found: Any = ambient.read("pid", lambda: attributes[_PID])
            if isinstance(found, str):
                attributes[_PID] = found
        return original(self, *args, **options)

    return connect

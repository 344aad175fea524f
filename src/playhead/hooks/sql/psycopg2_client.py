"""Route the connections of psycopg2 through a relay.

Knows `psycopg2._connect`, which gets the connection string, and the methods of connections and cursors that wait for
the server. These methods wait in C, so a relay needs a thread, even one that is served from the tape. They are wrapped
so that answers reach the program at their places.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from playhead.hooks.guest import Patches, need
from playhead.hooks.replacements import graft
from playhead.hooks.sql.psycopg_client import explain, relayed
from playhead.hooks.sql.relay import Relay
from playhead.host.lean import wrapping

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

_relays: WeakKeyDictionary[Any, Relay] = WeakKeyDictionary()

_OF_CURSORS = (
    *("execute", "executemany", "callproc", "copy_from", "copy_to", "copy_expert"),
    *("fetchone", "fetchmany", "fetchall", "scroll", "close", "__next__"),
)
_OF_CONNECTIONS = (
    *("commit", "rollback", "reset", "set_session", "set_client_encoding", "poll", "__exit__"),
    *("tpc_begin", "tpc_prepare", "tpc_commit", "tpc_rollback", "tpc_recover"),
)


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is psycopg2."""
    need(module, "_connect", "extensions")
    extensions = module.extensions
    need(extensions, "parse_dsn", "make_dsn", "connection", "cursor")
    for kind, names in ((extensions.cursor, _OF_CURSORS), (extensions.connection, _OF_CONNECTIONS)):
        for name in names:
            original = vars(kind).get(name)
            if original is not None:
                graft(
                    patches,
                    kind,
                    name,
                    wrapping(_method(original, kind is extensions.cursor), original),
                )
    patches.replace(module, "_connect", lambda original: _connect(original, module))
    patches.on_undo(_relays.clear)


def _connect(original: Callable[..., Any], module: Any) -> Callable[..., Any]:
    def connect(dsn: str, *args: Any, **options: Any) -> Any:
        made = relayed(dict(module.extensions.parse_dsn(dsn)), "psycopg2", inline=False)
        if made is None:
            return original(dsn, *args, **options)
        relay, changed = made
        try:
            connection = original(module.extensions.make_dsn(**changed), *args, **options)
        except module.Error as error:
            relay.settle()
            explain(error, relay)
            raise
        _relays[connection] = relay
        relay.settle()
        return connection

    return connect


def _method(original: Any, is_of_cursor: bool) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **options: Any) -> Any:
        relay = _relays.get(self.connection if is_of_cursor else self) if _relays else None
        if relay is None:
            return original(self, *args, **options)
        relay.enter()
        try:
            result = original(self, *args, **options)
        except KeyboardInterrupt:
            relay.leave()
            raise
        except BaseException:
            with contextlib.suppress(StopIteration):
                relay.settle()  # raises a problem of the replay first
            raise
        relay.settle()
        return result

    return method

"""The state of a relay that both of its sides use, and the methods of `Relay` that they call."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import _thread
    import contextvars
    from collections import deque
    from typing import Any

    from playhead.hooks.sql import pgwire
    from playhead.hooks.sql.cycles import Cycle
    from playhead.hooks.sql.outlet import Outlet
    from playhead.hooks.sql.pgwire import Message
    from playhead.hooks.sql.upstream import PostgresTarget


class RelayState:
    """Declares the attributes and methods that both sides use. `Relay` sets and implements them."""

    target: PostgresTarget
    is_closed: bool
    problem: BaseException | None
    _lock: _thread.LockType
    _client: Any
    _server: Any
    _listener: Any
    _cancelling: Any
    _is_cancelled: bool
    _to_client: Outlet
    _to_server: Outlet
    _from_server: pgwire.Cutter
    _context: contextvars.Context
    # Statements that the server has not answered yet, and those whose end is not reported yet.
    _flight: deque[Cycle]
    _finished: deque[Cycle]
    _status: bytes
    _is_logged_in: bool

    def close(self) -> None:
        raise NotImplementedError

    def _meet(self, client: Any) -> None:
        raise NotImplementedError

    def _take(self, data: bytes) -> None:
        raise NotImplementedError

    def _send(self, message: Message) -> None:
        raise NotImplementedError

    def _end(self, cycle: Cycle) -> None:
        raise NotImplementedError

    def _notification(self) -> Any:
        raise NotImplementedError

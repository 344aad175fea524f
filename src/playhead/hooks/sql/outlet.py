"""Send without blocking, and buffer the data that the other side does not take yet."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

_AT_ONCE = 65536
# The errors of a non-blocking connection, plain or TLS, that is not ready.
NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Outlet:
    """The sending side of a connection."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._left = bytearray()

    @property
    def is_full(self) -> bool:
        return bool(self._left)

    def send(self, data: bytes) -> None:
        self._left += data
        self.flush()

    def flush(self) -> bool:
        """Send as much of the buffer as the other side takes. Return whether anything was sent."""
        has_sent = False
        while self._left:
            try:
                count = self._connection.send(bytes(self._left[:_AT_ONCE]))
            except NOT_NOW:
                break
            del self._left[:count]
            has_sent = True
        return has_sent

"""What models have answered, told to the clerk: so that a command has the answer as its cause in which a
model asked for it. Used by the proxy, which hears the answers. Knows one frame; fails without a word.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping

from playhead.launch.shims.shim_frames import frame

# The proxy serves others meanwhile.
_PATIENCE_S = 0.2


class Telling:
    """To the clerk that listens at `address`."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._line: socket.socket | None = None

    def __call__(
        self, call: str, api: str, status: int, headers: Mapping[str, str], body: bytes
    ) -> None:
        head = json.dumps([call, api, status, dict(headers)]).encode()
        try:
            self._reach().sendall(frame(b"H", head + b"\0" + body))
        except OSError:
            self._line = None  # the next one may be luckier

    def _reach(self) -> socket.socket:
        if self._line is None:
            self._line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._line.settimeout(_PATIENCE_S)
            self._line.connect(self._address)
        return self._line


def heard(payload: bytes) -> tuple[str, str, int, dict[str, str], bytes]:
    """The inverse."""
    head, _, body = payload.partition(b"\0")
    call, api, status, headers = json.loads(head)
    return str(call), str(api), int(status), dict(headers), body

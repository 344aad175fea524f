"""Let a process that waits at a mark continue. Knows sockets and marks; does not know changes of files."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress

from playhead.workspace.watch import call_marks as marks
from playhead.workspace.watch.call_log import send_queue


class MarkAnswers:
    """Answers the marks of one run."""

    def __init__(self, queue: int) -> None:
        """`queue` is the queue of file events, for processes that want to share it."""
        self._queue = queue
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._line.setblocking(False)

    def once(self, mark: bytes, announce: Callable[[], None]) -> Callable[[], None]:
        """Return a function that answers a mark the first time it is called.

        `announce` says on the tape which changes are not stored by then: if this recorder is killed before it has
        stored them, the announcement counts them.
        """
        waiting = [mark]

        def answer() -> None:
            with suppress(OSError, IndexError):
                address = os.readlink(waiting.pop())
                if address != marks.NO_ANSWER.encode():
                    announce()
                    self._send(address)

        return answer

    def _send(self, address: bytes) -> None:
        shares = marks.SHARES.encode()
        if address.endswith(shares):
            send_queue(self._line, b"\0" + address.removesuffix(shares), self._queue)
        else:
            self._line.sendto(b".", b"\0" + address)

    def close(self) -> None:
        self._line.close()

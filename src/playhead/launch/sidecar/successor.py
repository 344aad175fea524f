"""The process that takes the sidecar's place if the sidecar is killed while a command is recorded.

It is forked from the sidecar, so it has the same pipes and listening sockets, under the same numbers. While the sidecar
lives, it only closes what the sidecar closes: otherwise a command whose reader has left would never get SIGPIPE. A
replay has no successor: it fails closed. Knows one pipe; `process` does the work.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from contextlib import suppress

from playhead.launch.sidecar.command_streams import Stream
from playhead.launch.sidecar.services import Service

_NOTICE = struct.Struct("cI")
_STREAM, _SERVICE, _TAPE, _END = b"S", b"V", b"T", b"E"


class Heir:
    """The sidecar's end: tells the successor what has ended. Without a successor, it does nothing."""

    def __init__(self, fd: int | None = None) -> None:
        self._fd = fd

    def drop_stream(self, stream: Stream) -> None:
        self._tell(_STREAM, stream.source)

    def drop_service(self, number: int) -> None:
        self._tell(_SERVICE, number)

    def close_tape(self) -> None:
        """The run has ended: from here on output is passed on, and not recorded."""
        self._tell(_TAPE)

    def dismiss(self) -> None:
        self._tell(_END)

    def _tell(self, what: bytes, number: int = 0) -> None:
        if self._fd is not None:
            with suppress(OSError):  # it was killed
                os.write(self._fd, _NOTICE.pack(what, number))


class Estate:
    """The successor's end: what is left when the sidecar has been killed."""

    def __init__(self, fd: int, streams: Sequence[Stream], services: Sequence[Service]) -> None:
        self._fd = fd
        self.streams = list(streams)
        self._services = services
        # Whether output still goes on the tape.
        self.is_taped = True

    def is_inherited(self) -> bool:
        """Wait for the end of the sidecar. Return whether it was killed."""
        while len(notice := os.read(self._fd, _NOTICE.size)) == _NOTICE.size:
            what, number = _NOTICE.unpack(notice)
            if what == _END:
                return False
            if what == _STREAM:
                self._drop(number)
            elif what == _SERVICE:
                self._services[number].stop(alone=False)
            else:
                self.is_taped = False
        os.close(self._fd)
        return True

    def _drop(self, source: int) -> None:
        for one in [one for one in self.streams if one.source == source]:
            self.streams.remove(one)
            os.close(one.source)
            os.close(one.sink)

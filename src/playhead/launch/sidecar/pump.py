"""One stream of the command's output, passed on. Knows a pipe and where it leads; not who asks for it."""

from __future__ import annotations

import fcntl
import os
import select
import struct
import termios

from playhead.launch.sidecar.command_streams import Stream
from playhead.tape.output_position import OutputPage

# Half of what goes into a blob: a piece of output is one line of the tape.
_AT_ONCE = 32 * 1024


class Pump:
    """One stream: read what comes, write it on; neither waits for the other streams."""

    def __init__(self, stream: Stream, page: OutputPage | None = None) -> None:
        self.stream = stream
        self._page = page
        # Read and not yet written; the whole piece that it is the rest of; its cut-off character.
        self.pending = b""
        self.piece = b""
        self.tail = b""
        # What was in the pipe when the command had ended; None: it has not.
        self.owed: int | None = None

    @property
    def is_dry(self) -> bool:
        return self.owed is not None and self.owed <= 0

    def drain(self) -> None:
        """From here on count what is still to come: a child left behind might write for ever."""
        (self.owed,) = struct.unpack(
            "i", fcntl.ioctl(self.stream.source, termios.FIONREAD, b"\0" * 4)
        )

    def register(self, poll: select.poll) -> None:
        # Without an event of interest the sink still tells that its reader has left; the source would
        # tell that its writer has, again and again, so it is left out while there is nothing to ask.
        poll.register(self.stream.sink, select.POLLOUT if self.pending else 0)
        if not self.pending and not self.is_dry:
            poll.register(self.stream.source, select.POLLIN)

    def pull(self) -> bool:
        """Take what the command wrote. False: it has closed its end."""
        if self._page is not None:
            self._page.begin(self.stream.name)
        size = 0
        try:
            self.piece = self.pending = os.read(self.stream.source, _AT_ONCE)
            size = len(self.piece)
        except BlockingIOError:
            return True
        finally:
            if self._page is not None:
                self._page.end(self.stream.name, size)
        if self.owed is not None:
            self.owed -= len(self.piece)
        return bool(self.piece)

    def push(self) -> bool:
        """Write as much as cannot block: what poll promises for a pipe is PIPE_BUF bytes. False:
        nobody takes it any more.
        """
        try:
            self.pending = self.pending[
                os.write(self.stream.sink, self.pending[: select.PIPE_BUF]) :
            ]
        except BlockingIOError:
            return True  # somebody has made it non-blocking: poll will say when
        except OSError:
            return False
        return True

    def close(self) -> None:
        """The command gets SIGPIPE with its next write, as it would from the reader itself."""
        os.close(self.stream.source)
        os.close(self.stream.sink)

    def take_piece(self) -> bytes:
        """The piece for the tape: up to its last character that is complete."""
        piece, self.piece, self.tail = self.tail + self.piece, b"", b""
        for back in range(1, min(4, len(piece) + 1)):
            if piece[-back] & 0xC0 == 0x80:
                continue
            if piece[-back] >= 0xC0 and back < _width(piece[-back]):
                piece, self.tail = piece[:-back], piece[-back:]
            break
        return piece


def _width(lead: int) -> int:
    return 4 if lead >= 0xF0 else 3 if lead >= 0xE0 else 2

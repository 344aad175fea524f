"""A real terminal: raw keys, its size, and writing to it. Knows termios and signals; not runs."""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import termios
import tty
from types import FrameType, TracebackType
from typing import Any, Protocol, Self

# All rows scroll again, and the cursor is seen. Setting the region moves it: so it is saved.
RESET = "\x1b7\x1b[r\x1b8\x1b[?25h"


class Terminal(Protocol):
    """What a show needs of a terminal; tests have one without a screen."""

    def size(self) -> tuple[int, int]:
        """Columns and rows."""

    def write(self, text: str) -> None:
        """All of it, at once."""

    def keys(self, timeout_s: float) -> list[str]:
        """What was pressed by then, returning early if something was."""

    def was_left(self) -> bool:
        """Whether somebody else has had the screen since it was last asked."""


class TtyTerminal:
    """Standard input and output of this process, for as long as it is entered.

    Whatever happens inside, the terminal's modes are put back.
    """

    def __init__(self) -> None:
        self._in = sys.stdin.fileno() if sys.stdin.isatty() else None
        self._out = sys.stdout.fileno()
        self._modes: list[Any] = []
        self._earlier: dict[signal.Signals, Any] = {}
        self._left = False

    def __enter__(self) -> Self:
        sys.stdout.flush()
        if self._in is not None:
            self._modes = termios.tcgetattr(self._in)
            tty.setcbreak(self._in, termios.TCSADRAIN)
        for number, handler in ((signal.SIGTSTP, self._leave), (signal.SIGCONT, self._come_back)):
            self._earlier[number] = signal.signal(number, handler)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._earlier.items():
            signal.signal(number, handler)
        self._put_back()

    def _put_back(self) -> None:
        if self._in is not None:
            termios.tcsetattr(self._in, termios.TCSADRAIN, self._modes)

    def _leave(self, number: int, frame: FrameType | None) -> None:
        """Ctrl-Z: the shell gets a terminal that it knows, all of it scrolling, then we stop."""
        self._put_back()
        self.write(RESET)
        signal.raise_signal(signal.SIGSTOP)

    def _come_back(self, number: int, frame: FrameType | None) -> None:
        """After `fg`: the shell has set its own modes, and written on the screen."""
        if self._in is not None:
            tty.setcbreak(self._in, termios.TCSADRAIN)
        self._left = True

    def was_left(self) -> bool:
        left, self._left = self._left, False
        return left

    def size(self) -> tuple[int, int]:
        try:
            found = os.get_terminal_size(self._out)
        except OSError:
            return 80, 24
        return found.columns or 80, found.lines or 24

    def write(self, text: str) -> None:
        view = memoryview(text.encode(sys.stdout.encoding or "utf-8", "replace"))
        while view:
            view = view[os.write(self._out, view) :]

    def keys(self, timeout_s: float) -> list[str]:
        ready, _, _ = select.select([] if self._in is None else [self._in], [], [], timeout_s)
        if not ready or self._in is None:
            return []
        raw = os.read(self._in, 256)
        if not raw:  # hung up: there will never be a key again
            self._in = None
        return keys_in(raw)


# CSI and SS3 sequences, with the parameters that modifiers add; then any single character.
_SEQUENCE = re.compile(rb"\x1b(?:\[[0-9;]*([A-Za-z~])|O([A-Za-z]))|(?s:.)")
_ARROWS = {b"C": "right", b"D": "left", b"H": "home", b"F": "end"}
_NAMES = {" ": "space", "=": "+", "_": "-", "h": "?", "Q": "q", "\x03": "q", "\x04": "q"}


def keys_in(raw: bytes) -> list[str]:
    """`space`, `left`, `right`, `home`, `end`, or the character itself; unknown ones are left out."""
    found = []
    for hit in _SEQUENCE.finditer(raw):
        final = hit.group(1) or hit.group(2)
        if final:
            name = _ARROWS.get(final, "")
        else:
            letter = hit.group().decode("latin-1")
            name = _NAMES.get(letter, letter if letter.isprintable() else "")
        if name:
            found.append(name)
    return found

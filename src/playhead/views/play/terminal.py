"""A real terminal: raw keys, its size, and a screen with a growing page above a fixed bar. Does not know runs.

The last row is excluded from scrolling, so the page scrolls into the terminal's own history and the bar is
written only when it changes. Every change is one write, so nothing flickers.
"""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import termios
import tty
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Any, Protocol, Self

from rich.console import Console
from rich.text import Text

from playhead.views.play.text_page import TextPage

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


# Not drawn until it is whole, by terminals that know of it; ignored by the others.
_TOGETHER, _DONE = "\x1b[?2026h", "\x1b[?2026l"
_SAVE, _RESTORE = "\x1b7", "\x1b8"
_HIDE = "\x1b[?25l"


class Screen:
    """`open` before, `close` after; in between `follow` a page, `draw` others, set the `bar`."""

    def __init__(self, terminal: Terminal, console: Console) -> None:
        self._terminal = terminal
        self._console = console
        self.width, self.height = terminal.size()
        self._bar = ""
        # How much of the page is on the screen: its finished lines, and the unfinished one.
        self._finished = 0
        self._unfinished = ""

    def open(self) -> None:
        # Setting the region moves the cursor home; and it must not stand on the bar's row.
        region = f"\n\x1b[A{_SAVE}\x1b[1;{max(1, self.height - 1)}r{_RESTORE}"
        self._write(_HIDE + region)

    def close(self) -> None:
        bar = f"{_SAVE}\x1b[{self.height};1H\x1b[2K{_RESTORE}"
        line = "" if not self._unfinished else "\r\n"
        self._write(f"{RESET}{bar}{line}")

    def refit(self) -> bool:
        """Whether the terminal has another size than before, or was used by somebody else; then
        all must be drawn again.
        """
        size = self._terminal.size()
        if size == (self.width, self.height) and not self._terminal.was_left():
            return False
        self.width, self.height = size
        self._bar = ""
        self._write(f"{_HIDE}\x1b[1;{max(1, self.height - 1)}r\x1b[H\x1b[J")
        return True

    def follow(self, page: TextPage) -> None:
        """Write what has been added to the page since it was last followed or drawn."""
        written = []
        for at in range(self._finished, len(page.lines)):
            line = page.lines[at]
            if at == self._finished:
                written.append(self._grown(line))
            else:
                written.append("\r\n" + self._styled(line))
        self._finished = len(page.lines) - 1
        self._unfinished = page.lines[-1].plain
        if any(written):
            self._write("".join(written))

    def draw(self, page: TextPage) -> None:
        """The end of the page, as much as fits, in place of whatever is there."""
        rows = max(1, self.height - 1)
        shown = page.lines[-rows:]
        self._write("\x1b[H\x1b[J" + "\r\n".join(self._styled(line) for line in shown))
        self._bar = ""
        self._finished = len(page.lines) - 1
        self._unfinished = page.lines[-1].plain

    def draw_lines(self, lines: Sequence[Text]) -> None:
        """Something else than the page; `draw` brings it back."""
        self._write("\x1b[H\x1b[J" + "\r\n".join(self._styled(line) for line in lines))
        self._bar = ""

    def set_bar(self, bar: Text) -> None:
        shown = self._styled(bar)
        if shown != self._bar:
            self._bar = shown
            self._write(f"{_SAVE}\x1b[{self.height};1H{shown}\x1b[K{_RESTORE}")

    def _grown(self, line: Text) -> str:
        """What to write where a part of the line stands already."""
        if line.plain == self._unfinished:
            return ""
        if line.plain.startswith(self._unfinished):
            return self._styled(line[len(self._unfinished) :] if self._unfinished else line)
        return "\r\x1b[K" + self._styled(line)  # a word has moved down to the next line

    def _styled(self, line: Text) -> str:
        with self._console.capture() as captured:
            self._console.print(line, end="", soft_wrap=True)
        return captured.get()

    def _write(self, text: str) -> None:
        self._terminal.write(f"{_TOGETHER}{text}{_DONE}")

"""Play a run on a terminal, driven by time and keys, or as plain lines into a pipe."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.text import Text

from playhead.views.play.frames import PlayFrame
from playhead.views.play.playback import Playback, bar_of
from playhead.views.play.terminal import Screen, Terminal
from playhead.views.play.text_page import TextPage
from playhead.views.play.transcript import Transcript
from playhead.views.text.console import print_line

_JUMP_NS = 5_000_000_000
# Interval of the status bar, and of checking the window size while paused.
_TICK_S = 0.1
_IDLE_S = 0.5
# Frames to redraw after a jump back; more only if they do not fill the screen.
_REDRAWN = 256

HELP = """\
  space   pause, resume           f     next failure
  .       one step                + -   faster, slower
  ,       one step back           home  to the start
  ← →     5 seconds back, forward q     quit

  Any key returns to the run."""


class PlayShow:
    """Plays a run on a terminal, with keys."""

    def __init__(
        self, player: Playback, terminal: Terminal, console: Console, now_ns: Callable[[], int]
    ) -> None:
        self._player = player
        self._terminal = terminal
        self._now = now_ns
        self._screen = Screen(terminal, console)
        self._transcript = Transcript(self._screen.width)
        self._is_helping = False
        self._was_paused = False

    def run(self) -> None:
        """Play until the run ends or the viewer quits."""
        self._screen.open()
        try:
            while self._tick():
                continue
        finally:
            self._screen.close()

    def _tick(self) -> bool:
        """Show the frames that are due, then handle keys. False: the playback is over."""
        player = self._player
        if self._screen.resized():
            player.resume(self._now())  # the time in the background does not count
            self._redraw()
        self._show(player.advance(self._now()))
        self._screen.set_bar(bar_of(player, self._screen.width))
        if player.is_over and not player.is_paused:
            self._transcript.close()
            self._screen.follow(self._transcript.page)
            return False
        pressed = self._terminal.keys(self._timeout_s())
        if pressed:  # the key takes effect at the time it was pressed
            self._show(player.advance(self._now()))
        return all(self._handle(key) for key in pressed)

    def _timeout_s(self) -> float:
        wait = self._player.wait_ns()
        return _IDLE_S if wait is None else min(_TICK_S, wait / 1e9)

    def _handle(self, key: str) -> bool:
        """Handle a key. False: quit."""
        player = self._player
        if key == "q":
            return False
        if self._is_helping:
            self._is_helping = False
            player.is_paused = self._was_paused
            self._redraw()
            return True
        if key == "?":
            self._help()
        elif key == "space":
            player.toggle()
        elif key == "+":
            player.faster()
        elif key == "-":
            player.slower()
        elif key == ",":
            player.back()
        else:
            self._show(self._jump(key))
        if player.moved_back:
            player.moved_back = False
            self._redraw()
        return True

    def _jump(self, key: str) -> Sequence[PlayFrame]:
        player = self._player
        if key == ".":
            return player.step()
        if key == "f":
            return player.seek_failure()
        if key == "left":
            return player.seek(player.position_ns - _JUMP_NS)
        if key == "right":
            return player.seek(player.position_ns + _JUMP_NS)
        if key in ("home", "0"):
            return player.seek(player.first_ns)
        return ()

    def _show(self, frames: Sequence[PlayFrame]) -> None:
        if frames and not self._is_helping:
            self._transcript.add(frames)
            self._screen.follow(self._transcript.page)

    def _redraw(self) -> None:
        """Draw the screen as it looks at the current position."""
        player = self._player
        count = _REDRAWN
        while True:
            first = max(0, player.shown - count)
            self._transcript = Transcript(self._screen.width)
            self._transcript.add(player.frames[first : player.shown])
            if not first or len(self._transcript.page.lines) >= self._screen.height:
                break
            count *= 4
        self._screen.draw(self._transcript.page)

    def _help(self) -> None:
        self._is_helping = True
        self._was_paused, self._player.is_paused = self._player.is_paused, True
        lines = [Text("Keys", style="name"), Text(), *map(Text, HELP.splitlines())]
        self._screen.draw_lines(lines)


def play_plain(
    player: Playback, out: Console, width: int, pause: Callable[[float], None] | None
) -> None:
    """Print the run as lines. `pause` sleeps a number of seconds; None: print everything at once."""
    transcript = Transcript(width)
    printed = now = 0
    while not player.is_over:
        if pause is None:
            transcript.add(player.step())
        else:
            wait = player.wait_ns() or 0
            pause(wait / 1e9)
            now += wait
            transcript.add(player.advance(now))
        printed = _print(out, transcript.page, printed, len(transcript.page.lines) - 1)
    transcript.close()
    if not transcript.page.is_at_start:
        _print(out, transcript.page, printed, len(transcript.page.lines))


def _print(out: Console, page: TextPage, first: int, last: int) -> int:
    """Print the lines from `first` up to `last`. Return the number of printed lines."""
    for at in range(first, last):
        print_line(out, page.lines[at])
    if last > first:
        out.file.flush()
    return max(first, last)

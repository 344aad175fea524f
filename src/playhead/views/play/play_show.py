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
# How often the bar moves, and how often a paused show looks whether the window has changed.
_TICK_S = 0.1
_IDLE_S = 0.5
# Frames that are told again at first after a jump back; more only if they fill no screen.
_RETOLD = 256

HELP = """\
  space   pause, go on            f     on to the next failure
  .       one step                + -   faster, slower
  ,       one step back           home  to the start
  ← →     5 seconds back, on      q     quit

  Any key goes back to the run."""


class PlayShow:
    """One performance."""

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
        """Until the tape ends, or somebody leaves."""
        self._screen.open()
        try:
            while self._turn():
                continue
        finally:
            self._screen.close()

    def _turn(self) -> bool:
        """One look at the clock, one at the keyboard. False: it is over."""
        player = self._player
        if self._screen.refit():
            player.resume(self._now())  # the time that somebody else had the terminal is not ours
            self._retell()
        self._tell(player.advance(self._now()))
        self._screen.set_bar(bar_of(player, self._screen.width))
        if player.is_over and not player.is_paused:
            self._transcript.close()
            self._screen.follow(self._transcript.page)
            return False
        pressed = self._terminal.keys(self._patience())
        if pressed:  # the time until then has passed, whatever the key does
            self._tell(player.advance(self._now()))
        return all(self._press(key) for key in pressed)

    def _patience(self) -> float:
        wait = self._player.wait_ns()
        return _IDLE_S if wait is None else min(_TICK_S, wait / 1e9)

    def _press(self, key: str) -> bool:
        """What a key does. False: leave."""
        player = self._player
        if key == "q":
            return False
        if self._is_helping:
            self._is_helping = False
            player.is_paused = self._was_paused
            self._retell()
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
            self._tell(self._jump(key))
        if player.moved_back:
            player.moved_back = False
            self._retell()
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

    def _tell(self, frames: Sequence[PlayFrame]) -> None:
        if frames and not self._is_helping:
            self._transcript.add(frames)
            self._screen.follow(self._transcript.page)

    def _retell(self) -> None:
        """Draw the screen as it would look had it been played up to here."""
        player = self._player
        told = _RETOLD
        while True:
            first = max(0, player.shown - told)
            self._transcript = Transcript(self._screen.width)
            self._transcript.add(player.frames[first : player.shown])
            if not first or len(self._transcript.page.lines) >= self._screen.height:
                break
            told *= 4
        self._screen.draw(self._transcript.page)

    def _help(self) -> None:
        self._is_helping = True
        self._was_paused, self._player.is_paused = self._player.is_paused, True
        lines = [Text("Keys", style="name"), Text(), *map(Text, HELP.splitlines())]
        self._screen.draw_lines(lines)


def play_plainly(
    player: Playback, out: Console, width: int, pause: Callable[[float], None] | None
) -> None:
    """`pause` waits so many seconds; None: everything at once."""
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
    """The lines from `first` up to `last`; that is how many are out by now."""
    for at in range(first, last):
        print_line(out, page.lines[at])
    if last > first:
        out.file.flush()
    return max(first, last)

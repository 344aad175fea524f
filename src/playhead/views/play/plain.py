"""Playing into a pipe, or on a terminal that cannot move its cursor: lines, each when it is whole.

Knows the player; what waits is brought along, or nobody does.
"""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console

from playhead.views.play.page import Page
from playhead.views.play.player import Player
from playhead.views.play.transcript import Transcript
from playhead.views.text.console import print_line


def play_plainly(
    player: Player, out: Console, width: int, pause: Callable[[float], None] | None
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


def _print(out: Console, page: Page, first: int, last: int) -> int:
    """The lines from `first` up to `last`; that is how many are out by now."""
    for at in range(first, last):
        print_line(out, page.lines[at])
    if last > first:
        out.file.flush()
    return max(first, last)

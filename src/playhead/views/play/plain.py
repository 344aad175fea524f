"""Playing into a pipe, or on a terminal that cannot move its cursor: lines, each when it is whole.

Knows the player; what waits is brought along, or nobody does.
"""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.text import Text

from playhead.views.play.player import Player
from playhead.views.play.transcript import Transcript


def play_plainly(
    player: Player, out: Console, width: int, pause: Callable[[float], None] | None
) -> None:
    """`pause` waits so many seconds; None: everything at once."""
    transcript = Transcript(width)
    page = transcript.page
    printed = 0
    now = 0
    while not player.is_over:
        if pause is None:
            transcript.add(player.step())
        else:
            wait = player.wait_ns() or 0
            pause(wait / 1e9)
            now += wait
            transcript.add(player.advance(now))
        while printed < len(page.lines) - 1:
            _print(out, page.lines[printed])
            printed += 1
    if not page.is_at_start:
        _print(out, page.lines[-1])


def _print(out: Console, line: Text) -> None:
    line.rstrip()
    out.print(line, soft_wrap=True)

"""Playing into a pipe, or on a terminal that cannot move its cursor: lines, each when it is whole.

Knows the player; what waits is brought along, or nobody does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.text import Text

from playhead.views.play.player import Player
from playhead.views.play.transcript import Transcript


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
        printed = _print(out, transcript.page.lines[:-1], printed)
    transcript.close()
    if not transcript.page.is_at_start:
        _print(out, transcript.page.lines, printed)


def _print(out: Console, lines: Sequence[Text], first: int) -> int:
    """The lines from `first` on; how many there are by now."""
    for line in lines[first:]:
        line.rstrip()
        out.print(line, soft_wrap=True)
    return len(lines)

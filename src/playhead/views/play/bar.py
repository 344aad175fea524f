"""The line at the bottom: where the playhead stands, and what had been spent by then. Pure."""

from __future__ import annotations

from rich.text import Text

from playhead.views.play.player import Player
from playhead.views.text import words

_SHORTEST_TRACK = 8


def bar_of(player: Player, width: int) -> Text:
    """`▶ 00:03.2 / 00:09.9  4×  ━━━━──────  4/11 calls  4,532 tokens  $0.0072  ? keys`."""
    mark = "‖" if player.is_paused else "■" if player.is_over else "▶"
    position = player.total_ns if player.is_over else player.position_ns
    place = f" {mark} {words.position(position)} / {words.position(player.total_ns)}"
    left = f"{place}  {speed_of(player)}  "
    facts = [_calls(player), *_spent(player), "? keys"]
    right = "  " + "  ".join(facts) + " "
    while facts and len(left) + _SHORTEST_TRACK + len(right) > width:
        facts.pop(-2 if len(facts) > 1 else -1)
        right = "  " + "  ".join(facts) + " " if facts else " "
    room = max(0, width - len(left) - len(right))
    return Text((left + _track(player, room) + right)[:width].ljust(width), style="bar")


def speed_of(player: Player) -> str:
    speed = player.speed
    return f"{speed:.0f}×" if speed >= 1 and speed == round(speed) else f"{speed:g}×"


def _calls(player: Player) -> str:
    asked = player.frames[player.shown - 1].calls if player.shown else 0
    total = words.count(player.frames[-1].calls if player.frames else 0)
    return f"{words.count(asked).rjust(len(total))}/{total} calls"


def _spent(player: Player) -> list[str]:
    """As wide as it will be in the end: what moves about cannot be read."""
    if not player.frames:
        return []
    last = player.frames[-1]
    frame = player.frames[player.shown - 1] if player.shown else None
    tokens, cost = words.count(last.tokens), words.money(last.cost_usd)
    spent = []
    if last.tokens:
        spent.append(f"{words.count(frame.tokens if frame else 0).rjust(len(tokens))} tokens")
    if last.cost_usd:
        spent.append(words.money(frame.cost_usd if frame else 0.0).rjust(len(cost)))
    return spent


def _track(player: Player, room: int) -> str:
    length = player.total_ns - player.first_ns
    gone = (player.position_ns - player.first_ns) / length if length else 1.0
    done = room if player.is_over else min(room, int(room * gone))
    return "━" * done + "─" * (room - done)

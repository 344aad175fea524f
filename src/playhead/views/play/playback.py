"""The position of a playback, the status bar that shows it, and places on a tape such as `12s`. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from rich.text import Text

from playhead.errors import UsageError
from playhead.story import CallItem
from playhead.views.play.frames import PlayFrame
from playhead.views.text import words

SLOWEST, FASTEST = 0.125, 1024.0


class Playback:
    """`moved_back` says that frames which were shown already must be taken off the screen."""

    def __init__(
        self, frames: Sequence[PlayFrame], *, speed: float = 1.0, max_wait_ns: int | None = None
    ) -> None:
        self.frames = frames
        self.total_ns = frames[-1].at_ns if frames else 0
        self.first_ns = frames[0].at_ns if frames else 0
        self.speed = speed
        self.max_wait_ns = max_wait_ns
        self.is_paused = False
        self.moved_back = False
        # How many frames are on the screen.
        self.shown = 0
        self.position_ns = self.first_ns
        self._moments = [frame.at_ns for frame in frames]
        self._now: int | None = None

    @property
    def is_over(self) -> bool:
        return self.shown == len(self.frames)

    def advance(self, now_ns: int) -> Sequence[PlayFrame]:
        """Time has gone on: the frames that have become due."""
        passed = 0 if self._now is None else max(0, now_ns - self._now)
        self._now = now_ns
        if self.is_paused or self.is_over:
            return ()
        self._shorten()
        self.position_ns += ceil(passed * self.speed)
        due = bisect_right(self._moments, self.position_ns, lo=self.shown)
        return self._show(due)

    def resume(self, now_ns: int) -> None:
        """Go on from here: the time since the last `advance` does not count."""
        self._now = now_ns

    def wait_ns(self) -> int | None:
        """How long until the next frame is due; None: nothing will happen by itself."""
        if self.is_paused or self.is_over:
            return None
        self._shorten()
        # Rounded up: a playhead that stops a nanosecond short of its frame would wait for ever.
        return max(0, ceil((self._moments[self.shown] - self.position_ns) / self.speed))

    def toggle(self) -> None:
        self.is_paused = not self.is_paused

    def step(self) -> Sequence[PlayFrame]:
        """The next frame, and wait there."""
        self.is_paused = True
        if self.is_over:
            return ()
        self.position_ns = self._moments[self.shown]
        return self._show(self.shown + 1)

    def back(self) -> None:
        """One frame back, and wait there."""
        self.is_paused = True
        if self.shown:
            self.shown -= 1
            self.moved_back = True
            self.position_ns = self._moments[self.shown - 1] if self.shown else self.first_ns

    def seek(self, to_ns: int) -> Sequence[PlayFrame]:
        """Jump. Forwards what lies between is shown at once; backwards it is taken off."""
        self.position_ns = max(self.first_ns, min(to_ns, self.total_ns))
        due = bisect_right(self._moments, self.position_ns)
        if due >= self.shown:
            return self._show(due)
        # Standing on the first frame of the tape shows it; one could not see where one is.
        self.shown = max(due, 1) if self.position_ns == self.first_ns else due
        self.moved_back = True
        return ()

    def seek_failure(self) -> Sequence[PlayFrame]:
        """On to the next failure, and wait there."""
        for at in range(self.shown, len(self.frames)):
            if self.frames[at].is_failure:
                self.is_paused = True
                self.position_ns = self._moments[at]
                return self._show(at + 1)
        return ()

    def faster(self) -> None:
        self.speed = min(FASTEST, self.speed * 2)

    def slower(self) -> None:
        self.speed = max(SLOWEST, self.speed / 2)

    def _show(self, until: int) -> Sequence[PlayFrame]:
        shown = self.frames[self.shown : until]
        self.shown = max(self.shown, until)
        return shown

    def _shorten(self) -> None:
        """No pause is longer than `max_wait_ns` for who is watching."""
        if self.max_wait_ns is None or self.is_over:
            return
        earliest = self._moments[self.shown] - round(self.max_wait_ns * self.speed)
        self.position_ns = max(self.position_ns, earliest)


_SHORTEST_TRACK = 8


def bar_of(player: Playback, width: int) -> Text:
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


def speed_of(player: Playback) -> str:
    speed = player.speed
    return f"{speed:.0f}×" if speed >= 1 and speed == round(speed) else f"{speed:g}×"


def _calls(player: Playback) -> str:
    asked = player.frames[player.shown - 1].calls if player.shown else 0
    total = words.count(player.frames[-1].calls if player.frames else 0)
    return f"{words.count(asked).rjust(len(total))}/{total} calls"


def _spent(player: Playback) -> list[str]:
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


def _track(player: Playback, room: int) -> str:
    length = player.total_ns - player.first_ns
    gone = (player.position_ns - player.first_ns) / length if length else 1.0
    done = room if player.is_over else min(room, int(room * gone))
    return "━" * done + "─" * (room - done)


_CALL = re.compile(r"#?(\d+)")
_UNITS = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)")
_CLOCK = re.compile(r"(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayPlace:
    """One of the two."""

    call: int | None = None
    at_ns: int = 0


def parse_place(text: str) -> PlayPlace:
    """`7` and `#7` are calls; `12s`, `1.5m` and `01:30.5` are times from the start."""
    text = text.strip()
    if hit := _CALL.fullmatch(text):
        return PlayPlace(call=int(hit.group(1)))
    if hit := _UNITS.fullmatch(text):
        return PlayPlace(at_ns=round(float(hit.group(1)) * _SECONDS[hit.group(2)] * 1e9))
    if hit := _CLOCK.fullmatch(text):
        hours, minutes, seconds = (float(part or 0) for part in hit.groups())
        return PlayPlace(at_ns=round((hours * 3600 + minutes * 60 + seconds) * 1e9))
    raise UsageError(
        f"{text!r} is no place on a tape; expected a call (7 or #7) or a time (12s, 01:30)."
    )


def between(
    frames: Sequence[PlayFrame], first: PlayPlace | None, last: PlayPlace | None
) -> Sequence[PlayFrame]:
    """From the one up to the other, both included."""
    low = 0 if first is None else _index(frames, first, end=False)
    high = len(frames) if last is None else _index(frames, last, end=True)
    return frames[low:high]


def _index(frames: Sequence[PlayFrame], place: PlayPlace, *, end: bool) -> int:
    if place.call is None:
        moments = [frame.at_ns for frame in frames]
        return (bisect_right if end else bisect_left)(moments, place.at_ns)
    found = [
        at
        for at, frame in enumerate(frames)
        if isinstance(frame.item, CallItem) and frame.item.number == place.call
    ]
    if not found:
        raise UsageError(f"Call {place.call} is not among what would be played.")
    return found[-1] + 1 if end else found[0]

"""The state of a playback, its status bar, and positions on a tape such as `12s`. Pure: time is passed in."""

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

MIN_SPEED, MAX_SPEED = 0.125, 1024.0


class Playback:
    """A playback of frames. `moved_back`: frames that are on the screen must be removed from it."""

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
        # Number of frames on the screen.
        self.shown = 0
        self.position_ns = self.first_ns
        self._times = [frame.at_ns for frame in frames]
        self._now: int | None = None

    @property
    def is_over(self) -> bool:
        return self.shown == len(self.frames)

    def advance(self, now_ns: int) -> Sequence[PlayFrame]:
        """Move to the time `now_ns` of the viewer's clock. Return the frames that are due."""
        passed = 0 if self._now is None else max(0, now_ns - self._now)
        self._now = now_ns
        if self.is_paused or self.is_over:
            return ()
        self._limit_wait()
        self.position_ns += ceil(passed * self.speed)
        due = bisect_right(self._times, self.position_ns, lo=self.shown)
        return self._show(due)

    def resume(self, now_ns: int) -> None:
        """Set the viewer's clock without moving: the time since the last `advance` does not count."""
        self._now = now_ns

    def wait_ns(self) -> int | None:
        """Return the time until the next frame is due; None: paused or at the end."""
        if self.is_paused or self.is_over:
            return None
        self._limit_wait()
        # Rounded up: a position one nanosecond before its frame would never reach it.
        return max(0, ceil((self._times[self.shown] - self.position_ns) / self.speed))

    def toggle(self) -> None:
        self.is_paused = not self.is_paused

    def step(self) -> Sequence[PlayFrame]:
        """Pause at the next frame."""
        self.is_paused = True
        if self.is_over:
            return ()
        self.position_ns = self._times[self.shown]
        return self._show(self.shown + 1)

    def back(self) -> None:
        """Pause one frame earlier."""
        self.is_paused = True
        if self.shown:
            self.shown -= 1
            self.moved_back = True
            self.position_ns = self._times[self.shown - 1] if self.shown else self.first_ns

    def seek(self, to_ns: int) -> Sequence[PlayFrame]:
        """Jump to a time. Return the frames in between when jumping forwards; backwards, set `moved_back`."""
        self.position_ns = max(self.first_ns, min(to_ns, self.total_ns))
        due = bisect_right(self._times, self.position_ns)
        if due >= self.shown:
            return self._show(due)
        # At the start, the first frame is shown: an empty screen would not say where one is.
        self.shown = max(due, 1) if self.position_ns == self.first_ns else due
        self.moved_back = True
        return ()

    def seek_failure(self) -> Sequence[PlayFrame]:
        """Pause at the next failure."""
        for at in range(self.shown, len(self.frames)):
            if self.frames[at].is_failure:
                self.is_paused = True
                self.position_ns = self._times[at]
                return self._show(at + 1)
        return ()

    def faster(self) -> None:
        self.speed = min(MAX_SPEED, self.speed * 2)

    def slower(self) -> None:
        self.speed = max(MIN_SPEED, self.speed / 2)

    def _show(self, until: int) -> Sequence[PlayFrame]:
        shown = self.frames[self.shown : until]
        self.shown = max(self.shown, until)
        return shown

    def _limit_wait(self) -> None:
        """Skip ahead where the viewer would wait longer than `max_wait_ns`."""
        if self.max_wait_ns is None or self.is_over:
            return
        earliest = self._times[self.shown] - round(self.max_wait_ns * self.speed)
        self.position_ns = max(self.position_ns, earliest)


_MIN_TRACK = 8


def bar_of(player: Playback, width: int) -> Text:
    """`▶ 00:03.2 / 00:09.9  4×  ━━━━──────  4/11 calls  4,532 tokens  $0.0072  ? keys`."""
    mark = "‖" if player.is_paused else "■" if player.is_over else "▶"
    position = player.total_ns if player.is_over else player.position_ns
    place = f" {mark} {words.position(position)} / {words.position(player.total_ns)}"
    left = f"{place}  {speed_of(player)}  "
    facts = [_calls(player), *_totals(player), "? keys"]
    right = "  " + "  ".join(facts) + " "
    while facts and len(left) + _MIN_TRACK + len(right) > width:
        facts.pop(-2 if len(facts) > 1 else -1)
        right = "  " + "  ".join(facts) + " " if facts else " "
    room = max(0, width - len(left) - len(right))
    return Text((left + _track(player, room) + right)[:width].ljust(width), style="bar")


def speed_of(player: Playback) -> str:
    speed = player.speed
    return f"{speed:.0f}×" if speed >= 1 and speed == round(speed) else f"{speed:g}×"


def _calls(player: Playback) -> str:
    made = player.frames[player.shown - 1].calls if player.shown else 0
    total = words.count(player.frames[-1].calls if player.frames else 0)
    return f"{words.count(made).rjust(len(total))}/{total} calls"


def _totals(player: Playback) -> list[str]:
    """Return tokens and cost, padded to their final width so that they do not move."""
    if not player.frames:
        return []
    last = player.frames[-1]
    frame = player.frames[player.shown - 1] if player.shown else None
    tokens, cost = words.count(last.tokens), words.money(last.cost_usd)
    shown = []
    if last.tokens:
        shown.append(f"{words.count(frame.tokens if frame else 0).rjust(len(tokens))} tokens")
    if last.cost_usd:
        shown.append(words.money(frame.cost_usd if frame else 0.0).rjust(len(cost)))
    return shown


def _track(player: Playback, room: int) -> str:
    length = player.total_ns - player.first_ns
    share = (player.position_ns - player.first_ns) / length if length else 1.0
    done = room if player.is_over else min(room, int(room * share))
    return "━" * done + "─" * (room - done)


_CALL = re.compile(r"#?(\d+)")
_UNITS = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)")
_CLOCK = re.compile(r"(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayPlace:
    """A position on a tape: a call by its number, or a time since the start."""

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
        f"{text!r} is not a position on a tape; expected a call (7 or #7) or a time (12s, 01:30)."
    )


def between(
    frames: Sequence[PlayFrame], first: PlayPlace | None, last: PlayPlace | None
) -> Sequence[PlayFrame]:
    """Return the frames from `first` to `last`, both included."""
    low = 0 if first is None else _index(frames, first, end=False)
    high = len(frames) if last is None else _index(frames, last, end=True)
    if frames and low >= len(frames):
        end = words.position(frames[-1].at_ns)
        raise UsageError(f"--from is after the end of the run, which is at {end}.")
    if frames and low >= high:
        raise UsageError("There is nothing to play between --from and --to.")
    return frames[low:high]


def _index(frames: Sequence[PlayFrame], place: PlayPlace, *, end: bool) -> int:
    if place.call is None:
        times = [frame.at_ns for frame in frames]
        return (bisect_right if end else bisect_left)(times, place.at_ns)
    found = [
        at
        for at, frame in enumerate(frames)
        if isinstance(frame.item, CallItem) and frame.item.number == place.call
    ]
    if not found:
        raise UsageError(
            f"There is no call {place.call} to play: the run does not have it, or a filter hides it."
        )
    return found[-1] + 1 if end else found[0]

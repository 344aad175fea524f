"""Plays a run in real time or faster: the transcript as it grew, a scrubber, the speed. `views.play` does the work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult, RenderResult
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Footer, Static

from playhead.views.play.frames import PlayFrame
from playhead.views.play.playback import Playback, speed_of
from playhead.views.play.transcript import Transcript
from playhead.views.text import words
from playhead.views.tui.widgets import LineList

_TICK_S = 0.05
_JUMP_NS = 5_000_000_000
# Frames to redraw after a jump: more than fit on any screen.
_REDRAWN = 2_000


class Scrubber(Widget):
    """The position of the playback. A click moves it; failures are marked."""

    DEFAULT_CSS = "Scrubber { height: 1; }"

    class Sought(Message):
        """Move to a position: 0 is the start, 1 the end."""

        def __init__(self, share: float) -> None:
            super().__init__()
            self.share = share

    def __init__(self, player: Playback) -> None:
        super().__init__()
        self._player = player
        length = max(1, player.total_ns - player.first_ns)
        self._failures = [
            (frame.at_ns - player.first_ns) / length for frame in player.frames if frame.is_failure
        ]

    def share(self) -> float:
        player = self._player
        length = player.total_ns - player.first_ns
        if player.is_over or not length:
            return 1.0
        return min(1.0, (player.position_ns - player.first_ns) / length)

    def render(self) -> RenderResult:
        width = max(1, self.size.width)
        here = min(width - 1, int(self.share() * width))
        track = Text.assemble(
            ("━" * here, "running"), ("●", "bold"), ("─" * (width - here - 1), "quiet")
        )
        for failure in self._failures:
            at = min(width - 1, int(failure * width))
            track.stylize("failed", at, at + 1)
        return track

    def on_click(self, event: Click) -> None:
        self.post_message(self.Sought(event.x / max(1, self.size.width - 1)))


class PlayText:
    """Rows of the transcript up to the current position."""

    def __init__(self, player: Playback) -> None:
        self._player = player
        self._transcript = Transcript(80)
        self._width = -1

    def fit(self, width: int) -> None:
        if width != self._width:
            self._width = width
            self.redraw()

    def add(self, frames: Sequence[PlayFrame]) -> None:
        self._transcript.add(frames)
        if self._player.is_over:
            self._transcript.close()

    def redraw(self) -> None:
        self._transcript = Transcript(max(20, self._width))
        shown = self._player.shown
        self.add(self._player.frames[max(0, shown - _REDRAWN) : shown])

    def __len__(self) -> int:
        return len(self._transcript.page.lines)

    def text(self, at: int) -> Text:
        return self._transcript.page.lines[at]


class PlayScreen(Screen[None]):
    """Plays frames. `now_ns` is the clock."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "app.pop_screen", "Back", key_display="esc"),
        Binding("space", "pause", "Pause", priority=True),
        Binding("left", "seek(-1)", "5 s", key_display="← →", priority=True),
        Binding("right", "seek(1)", "5 s forward", show=False, priority=True),
        Binding("plus,equals_sign", "faster", "Speed", key_display="+ -"),
        Binding("minus", "slower", "Slower", show=False),
        Binding("full_stop", "step", "Step", key_display="."),
        Binding("comma", "back", "Step back", show=False),
        Binding("f", "failure", "Failure"),
        Binding("home", "tenth(0)", "Start", show=False, priority=True),
        Binding("end", "tenth(10)", "End", show=False, priority=True),
        *(Binding(str(n), f"tenth({n})", f"{n}0 %", show=False) for n in range(10)),
        Binding("question_mark", "app.keys", "Keys"),
    ]

    def __init__(self, frames: Sequence[PlayFrame], now_ns: Callable[[], int]) -> None:
        super().__init__()
        self._now = now_ns
        self.player = Playback(frames)
        self._text = PlayText(self.player)

    def compose(self) -> ComposeResult:
        yield LineList(id="page", cursor=False)
        yield Scrubber(self.player)
        yield Static(id="bar", markup=False)
        yield Footer(compact=True)

    def on_mount(self) -> None:
        page = self.query_one("#page", LineList)
        page.focus()
        page.show(self._text)
        self.player.resume(self._now())
        self.set_interval(_TICK_S, self.tick)

    def tick(self) -> None:
        """Show the frames that are due by now."""
        self._add(self.player.advance(self._now()))

    def _add(self, frames: Sequence[PlayFrame]) -> None:
        page = self.query_one("#page", LineList)
        if self.player.moved_back or len(frames) > _REDRAWN:
            self.player.moved_back = False
            self._text.redraw()
            page.show(self._text)
            page.to_end()
        elif frames:
            self._text.add(frames)
            page.show(self._text)
            page.to_end()
        self.query_one(Scrubber).refresh()
        self.query_one("#bar", Static).update(_bar(self.player))

    def on_scrubber_sought(self, event: Scrubber.Sought) -> None:
        self._seek_share(event.share)

    def _seek_share(self, share: float) -> None:
        player = self.player
        length = player.total_ns - player.first_ns
        self._add(player.seek(player.first_ns + round(length * share)))

    def action_pause(self) -> None:
        if self.player.is_over:
            self._seek_share(0)
        else:
            self.player.toggle()
        self._add(())

    def action_seek(self, way: int) -> None:
        self._add(self.player.seek(self.player.position_ns + way * _JUMP_NS))

    def action_tenth(self, tenths: int) -> None:
        self._seek_share(tenths / 10)

    def action_faster(self) -> None:
        self.player.faster()
        self._add(())

    def action_slower(self) -> None:
        self.player.slower()
        self._add(())

    def action_step(self) -> None:
        self._add(self.player.step())

    def action_back(self) -> None:
        self.player.back()
        self._add(())

    def action_failure(self) -> None:
        frames = self.player.seek_failure()
        if not frames:
            self.notify("No failure after this position.", markup=False)
        self._add(frames)


def _bar(player: Playback) -> Text:
    """`▶ 00:03.2 / 00:09.9  4×  4/11 calls  4,532 tokens  $0.0072`."""
    mark = "■" if player.is_over else "‖" if player.is_paused else "▶"
    position = player.total_ns if player.is_over else player.position_ns
    frame = player.frames[player.shown - 1] if player.shown else None
    last = player.frames[-1] if player.frames else None
    parts = [f"{mark} {words.position(position)} / {words.position(player.total_ns)}"]
    parts.append(speed_of(player))
    if last is not None:
        parts.append(f"{frame.calls if frame else 0}/{last.calls} calls")
        if last.tokens:
            parts.append(f"{words.count(frame.tokens if frame else 0)} tokens")
        if last.cost_usd:
            parts.append(words.money(frame.cost_usd if frame else 0.0))
    return Text("  ".join(parts), no_wrap=True, overflow="ellipsis")

"""A show on a terminal without a screen, whose clock only advances while the playback waits."""

import io
import re
from itertools import pairwise

import pytest
from rich.console import Console

from playhead.testing import Reply, Usage
from playhead.views.play.frames import frames_of
from playhead.views.play.play_show import PlayShow
from playhead.views.play.playback import Playback
from playhead.views.text.console import THEME

S = 1_000_000_000


class Screen:
    """Understands what we write to a terminal, and keeps what would be seen."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.clear()
        self.bottom = height
        self.bars: list[str] = []
        self.written = 0

    def clear(self) -> None:
        self.rows = [""] * self.height
        self.row = self.column = 0
        self.saved = (0, 0)

    def write(self, text: str) -> None:
        self.written += 1
        for part in re.findall(r"\x1b\[\??[0-9;]*[A-Za-z]|\x1b[78]|[\r\n]|[^\x1b\r\n]+", text):
            self.understand(part)
        self.bars.append(self.rows[-1])

    def understand(self, part: str) -> None:
        if part == "\r":
            self.column = 0
        elif part == "\n":
            self.down()
        elif part == "\x1b7":
            self.saved = (self.row, self.column)
        elif part == "\x1b8":
            self.row, self.column = self.saved
        elif part in ("\x1b[H", "\x1b[A"):
            self.row, self.column = (0, 0) if part == "\x1b[H" else (self.row - 1, self.column)
        elif part == "\x1b[J":
            self.rows[self.row :] = [""] * (self.height - self.row)
        elif part in ("\x1b[K", "\x1b[2K"):
            self.rows[self.row] = self.rows[self.row][: self.column if part == "\x1b[K" else 0]
        elif hit := re.fullmatch(r"\x1b\[(\d+);1H", part):
            self.row, self.column = int(hit[1]) - 1, 0
        elif hit := re.fullmatch(r"\x1b\[1;(\d+)r", part):
            self.bottom, self.row, self.column = int(hit[1]), 0, 0
        elif part == "\x1b[r":
            self.bottom, self.row, self.column = self.height, 0, 0
        elif not part.startswith("\x1b"):
            row = self.rows[self.row].ljust(self.column)
            self.rows[self.row] = row[: self.column] + part + row[self.column + len(part) :]
            self.column += len(part)

    def down(self) -> None:
        if self.row == self.bottom - 1:
            del self.rows[0]
            self.rows.insert(self.bottom - 1, "")
        else:
            self.row += 1


class Terminal:
    """`presses` are (seconds, key): pressed when the clock gets there."""

    def __init__(self, presses=(), width=80, height=24) -> None:
        self.screen = Screen(width, height)
        self.presses = sorted(presses, key=lambda press: press[0])
        self.now = 0
        self.seen: list[str] = []
        self.wanted = (width, height)

    def size(self):
        return self.wanted

    def was_suspended(self):
        return False

    def write(self, text):
        self.screen.write(text)

    def keys(self, timeout_s):
        self.seen.append("\n".join(self.screen.rows))
        if self.presses and self.presses[0][0] * S <= self.now + timeout_s * S:
            moment, key = self.presses.pop(0)
            self.now = max(self.now, round(moment * S))
            if callable(key):
                key(self)
                return []
            return [key]
        assert timeout_s < 0.5 or self.presses, "a paused show with nobody to press a key"
        self.now += round(timeout_s * S)
        return []


@pytest.fixture
def play(told):
    def run(tape, *presses, width=80, height=24, **options):
        terminal = Terminal(presses, width, height)
        player = Playback(frames_of(told(tape)), **options)
        console = Console(file=io.StringIO(), theme=THEME, color_system=None, width=width)
        PlayShow(player, terminal, console, lambda: terminal.now).run()
        return terminal

    return run


@pytest.fixture
def tape(forge):
    """Ten seconds: a tool a second, the fourth fails."""
    tape = forge()
    for number in range(10):
        error = ValueError("no") if number == 3 else None
        tape.tool(f"tool{number}", {}, took=1.0, value=number, error=error)
    return tape


def test_it_takes_as_long_as_it_took(tape, play):
    terminal = play(tape)
    assert terminal.now == pytest.approx(10 * S, rel=0.01)
    assert play(tape, speed=4.0).now == pytest.approx(2.5 * S, rel=0.01)
    assert play(tape, max_wait_ns=S // 10).now == pytest.approx(1 * S, rel=0.1)


def test_the_bar_says_where_the_playhead_stands(forge, play):
    tape = forge()
    tape.llm("hello", Reply(text="hi", usage=Usage(input=1000, output=50)), took=2.0)
    tape.tool("lookup", {}, took=2.0)
    terminal = play(tape, (3.0, "space"), (3.1, "q"))
    bar = terminal.seen[-1].splitlines()[-1]
    assert re.match(
        r" ‖ 00:03\.0 / 00:04\.0  1×  ━+─+  2/2 calls  1,050 tokens  \$0\.0\d+  \? keys", bar
    )
    assert len(bar) == 80
    assert terminal.screen.rows[-1] == ""


def test_the_bar_is_only_written_where_it_changes(tape, play):
    paused = play(tape, (2.0, "space"), (500.0, "q"))
    assert paused.screen.written < 60


def test_a_pause_lasts_until_it_is_ended(tape, play):
    terminal = play(tape, (2.5, "space"), (99.0, "space"))
    assert terminal.now == pytest.approx((99.0 + 7.5) * S, rel=0.01)


def test_steps_go_one_by_one_and_back(tape, play):
    looks = []

    def look(terminal):
        looks.append(sum("tool" in row for row in terminal.screen.rows))

    play(tape, (0.5, "space"), (1, "."), (1, "."), (2, look), (3, ","), (4, look), (5, "q"))
    assert looks == [2, 1]


def test_arrows_jump_five_seconds(tape, play):
    terminal = play(tape, (0.5, "right"))
    assert terminal.now == pytest.approx(5 * S, rel=0.02)
    terminal = play(tape, (6.0, "left"))
    assert terminal.now == pytest.approx(15 * S, rel=0.02)


def test_after_a_jump_back_the_screen_is_as_it_was(tape, play):
    looks = {}

    def look(name):
        return lambda terminal: looks.update({name: terminal.screen.rows[:-1]})

    play(
        tape,
        (2.5, "space"),
        (2.6, look("before")),
        (3, "right"),
        (4, "left"),
        (5, look("after")),
        (6, "q"),
    )
    assert looks["before"] == looks["after"]


def test_f_finds_the_failure_and_waits_there(tape, play):
    terminal = play(tape, (0.5, "f"), (9, "q"))
    assert "✗ #4 ValueError: no" in terminal.seen[-1]
    assert "‖ 00:04.0" in terminal.seen[-1]


def test_plus_and_minus_change_the_speed(tape, play):
    assert play(tape, (0.0, "+"), (0.0, "+")).now == pytest.approx(2.5 * S, rel=0.02)
    assert play(tape, (0.0, "-")).now == pytest.approx(20 * S, rel=0.02)


def test_help_is_shown_and_goes_with_the_next_key(tape, play):
    terminal = play(tape, (2.5, "?"), (3, "x"), (3.05, "q"))
    helped = [seen for seen in terminal.seen if "pause, resume" in seen]
    assert helped
    assert "tool1" not in helped[-1]
    assert "tool1" in terminal.seen[-1]


def test_more_than_a_screen_scrolls_and_leaves_the_bar_alone(tape, play):
    terminal = play(tape, (9.5, "space"), (9.6, "q"), height=6)
    rows = terminal.seen[-1].splitlines()
    assert "tool9" in rows[4]
    assert rows[5].startswith(" ‖ 00:09.5")
    assert "tool5" in rows[0]


def test_a_window_of_another_size_is_filled_again(tape, play):
    def shrink(terminal):
        terminal.wanted = (40, 10)
        terminal.screen = Screen(40, 10)

    terminal = play(tape, (3.5, shrink), (4.5, "space"), (4.6, "q"))
    assert "tool0" in terminal.screen.rows[0]
    assert all(len(row) <= 40 for row in terminal.screen.rows)


def test_words_stream_onto_their_line(forge, play):
    tape = forge()
    tape.llm("hello", Reply(text="one two three four five six", chunks=6), took=8.0)
    terminal = play(tape)
    growing = [
        row.partition("› ")[2] for seen in terminal.seen for row in seen.splitlines() if "› " in row
    ]
    stages = list(dict.fromkeys(growing))
    assert len(stages) >= 5
    assert all(later.startswith(earlier) for earlier, later in pairwise(stages))
    assert stages[-1] == "one two three four five six"


def test_an_empty_run_ends_at_once(forge, play):
    assert play(forge()).now == 0

"""`playhead play`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from playhead import clock
from playhead.cli.common import Duration, overrides, store_option
from playhead.cli.run_names import find_tape, run_argument
from playhead.events import BOUNDARIES
from playhead.story import Prices, tell
from playhead.tape.reader import Tape
from playhead.views.play.frames import FrameFilter, PlayFrame, frames_of
from playhead.views.play.play_show import PlayShow, play_plain
from playhead.views.play.playback import MAX_SPEED, MIN_SPEED, Playback, between, parse_place
from playhead.views.play.terminal import TtyTerminal
from playhead.views.text.console import console, width_of


@click.command("play")
@run_argument
@click.option(
    "--speed",
    type=click.FloatRange(MIN_SPEED, MAX_SPEED),
    metavar="X",
    help="Playback speed. Default: 1; into a pipe: without delays.",
)
@click.option("--max-wait", type=Duration(), help="Shorten longer pauses to this: 1s.")
@click.option(
    "--from", "first", metavar="PLACE", help="Start here: 12s, 01:30, or the number of a call."
)
@click.option("--to", "last", metavar="PLACE", help="Stop here.")
@click.option("--kind", "kinds", multiple=True, metavar="GLOB", help="Only these kinds of events.")
@click.option(
    "--boundary",
    "boundaries",
    multiple=True,
    type=click.Choice(BOUNDARIES),
    help="Only calls of this boundary.",
)
@click.option("--lane", "lanes", multiple=True, metavar="GLOB", help="Only these lanes.")
@click.option(
    "--who", multiple=True, metavar="GLOB", help="Only events of these agents or components."
)
@click.option("--no-output", is_flag=True, help="Hide the output of the program and its tools.")
@store_option
def command(
    *,
    run: str,
    speed: float | None,
    max_wait: float | None,
    first: str | None,
    last: str | None,
    kinds: tuple[str, ...],
    boundaries: tuple[str, ...],
    lanes: tuple[str, ...],
    who: tuple[str, ...],
    no_output: bool,
    store: Path | None,
) -> None:
    """Play a run with its original timing.

    Keys: space pauses, . and , step, ← and → jump 5 s, + and - change the speed, f goes to the
    next failure, ? shows all keys, q quits.

    \b
    playhead play last --speed 4 --max-wait 1s
    playhead play last --from 7 --to 9 --boundary llm --boundary tool
    playhead play last --no-output | less
    """
    start, stop = first and parse_place(first), last and parse_place(last)
    story = tell(Tape(find_tape(store, run)), prices=Prices(overrides=overrides()))
    shown = FrameFilter(
        kinds=kinds, boundaries=frozenset(boundaries), lanes=lanes, who=who, output=not no_output
    )
    frames = between(frames_of(story, shown), start or None, stop or None)
    wait = None if max_wait is None else round(max_wait * 1e9)
    _play(frames, console(), speed=speed, max_wait_ns=wait)


def _play(
    frames: Sequence[PlayFrame], out: Console, *, speed: float | None, max_wait_ns: int | None
) -> None:
    player = Playback(frames, speed=speed or 1.0, max_wait_ns=max_wait_ns)
    if sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        with TtyTerminal() as terminal:
            PlayShow(player, terminal, out, clock.mono_ns).run()
    else:
        pause = clock.sleep if speed is not None or sys.stdout.isatty() else None
        play_plain(player, out, width_of(out), pause)

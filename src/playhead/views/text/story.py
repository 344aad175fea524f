"""A run on a terminal: its outcome and the reason, the conversation as a tree, and the totals.

Knows stories and the width of the console.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from playhead import clock
from playhead.story import CallItem, Failure, Story, TurnItem
from playhead.tape.ending import Ending, ending_of
from playhead.tape.manifest import DETAILS, NOTE
from playhead.views.text import words
from playhead.views.text.console import console, print_line, width_of
from playhead.views.text.labels import heading, reason
from playhead.views.text.safe import one_line
from playhead.views.text.tree import TreeLine, tree_lines

_GAP = 2
# Paths of Python itself and of installed packages.
_LIBRARIES = ("/site-packages/", "/dist-packages/", "/lib/python", "<frozen ")
# Maximum number of calls and damages that are named; the rest is counted.
_FEW = 6


def print_story(story: Story, *, output: bool = False, full: bool = False, limit: int = 0) -> None:
    out = console()
    width = width_of(out)
    for line in (*head_of(story, width), Text("")):
        _print(out, line, width)
    lines = list(tree_lines(story, output=output, start_up=output or full, full=full, width=width))
    shown = lines[:limit] if limit else lines
    columns = Columns(shown)
    for one in shown:
        _print(out, columns.fitted(one, width), width)
    if len(shown) < len(lines):
        rest = f"… {words.count(len(lines) - len(shown))} more lines; leave out --limit to see all"
        _print(out, Text(rest, style="quiet"), width)
    if lines:
        _print(out, Text(""), width)
    for text in foot_of(story, width):
        _print(out, text, width)


def _print(out: Console, line: Text, width: int) -> None:
    if line.cell_len > width:
        line.truncate(width, overflow="ellipsis")
    print_line(out, line)


class Columns:
    """The widths of the columns for tokens, cost and time."""

    def __init__(self, lines: Sequence[TreeLine]) -> None:
        self.tokens = max((len(line.tokens) for line in lines), default=0)
        self.cost = max((len(line.cost) for line in lines), default=0)
        self.took = max((len(line.took) for line in lines), default=0)

    def fitted(self, line: TreeLine, width: int) -> Text:
        prefix = _short_prefix(line.prefix, width)
        right = self._right(line)
        room = max(16, width - len(prefix) - right.cell_len - (_GAP if right else 0))
        left = Text()
        if line.lane:
            left.append(f"[{line.lane}] ", style="quiet")
        left.append_text(heading(line.item, room - left.cell_len) if line.item else line.text)
        if left.cell_len > room:
            left.truncate(room, overflow="ellipsis")
        if not right:
            return Text.assemble((prefix, "quiet"), left)
        left.append(" " * (room - left.cell_len + _GAP))
        return Text.assemble((prefix, "quiet"), left, right)

    def _right(self, line: TreeLine) -> Text:
        if not line.took:
            return Text()
        right = Text()
        if line.tokens or line.cost:
            right.append(line.tokens.rjust(self.tokens), style="quiet")
            if self.cost:
                right.append("  " + line.cost.rjust(self.cost), style="money")
            right.append(" " * _GAP)
        style = "interrupted" if line.took == "in flight" else "quiet"
        return right.append(line.took.rjust(self.took), style=style)


def _short_prefix(prefix: str, width: int) -> str:
    """Shorten the branches of a deep line to the nearest ones."""
    most = width // 2
    return prefix if len(prefix) <= most else "… " + prefix[-(most - 2) :]


def head_of(story: Story, width: int) -> Iterator[Text]:
    """Yield the outcome, its reason, then command, time and tags."""
    manifest = story.manifest
    ending = ending_of(story.status, manifest)
    line = Text.assemble(
        (f"{ending.glyph} ", ending.tone),
        (one_line(manifest.name, 40), "name"),
        f"  {one_line(manifest.run, 60)}  ",
        (_ended(story, ending), ending.tone),
    )
    before = _start_up(story)
    fits = line.cell_len + len(f" ({before})") <= width
    yield line.append(f" ({before})", style=ending.tone) if before and fits else line
    yield from _why(story, width)
    if before and not fits:
        yield Text(f"  {before}", style="quiet")
    yield from (Text(f"  {line}", style="quiet") for line in _origin(story, width - 2))


def _ended(story: Story, ending: Ending) -> str:
    took = words.took(story.duration_ns)
    if story.status == "running":
        return f"running, {took} so far"
    program = "" if ending.word == story.status else f"; the program: {story.status}"
    return f"{ending.word} after {took}{program}"


def _start_up(story: Story) -> str:
    if story.status == "running" or not words.is_long_start(story.start_up_ns, story.duration_ns):
        return ""
    return f"{words.took(story.start_up_ns)} before its first call"


def _why(story: Story, width: int) -> Iterator[Text]:
    if story.failure is not None:
        yield Text(f"  {reason(story.failure, width - 2)}", style="failed")
        if story.failure.traceback:
            place = place_of(story.failure, story.manifest.cwd)
            yield Text(f"  at {one_line(place, width - 5)}", style="failed")
    turn = story.items.get(story.failed_turn) if story.failed_turn else None
    if isinstance(turn, TurnItem):
        seam = (
            f"last completed seam: {turn.last_seam}" if turn.last_seam else "before its first seam"
        )
        ended = "failed" if turn.how == "raised" else "was under way"
        text = f"turn {one_line(turn.name, 40)} {ended}; {one_line(seam, 60)}"
        yield Text(f"  {text}", style="interrupted")
    failed = [one for one in story.turns() if one.how == "raised" and one.ref != story.failed_turn]
    if failed:
        noun = "turn" if len(failed) == 1 else "turns"
        places = ", ".join(f"{one.name} (event {one.ref})" for one in failed[:3])
        more = f" and {len(failed) - 3} more" if len(failed) > 3 else ""
        text = f"{len(failed)} {noun} failed: {places}{more}"
        yield Text(f"  {one_line(text, width - 2)}", style="failed")
    if story.status != "running":
        calls = [one for ref in story.in_flight if isinstance(one := story.items[ref], CallItem)]
        for call in calls[-_FEW:]:
            text = f"in flight at the end: #{call.number} {call.boundary} {one_line(call.name, 80)}"
            yield Text(f"  {text}", style="interrupted")
    for problem in story.damage[:_FEW]:
        yield Text(f"  ! damaged: {one_line(problem, width - 14)}", style="interrupted")
    if len(story.damage) > _FEW:
        more = f"  ! {len(story.damage) - _FEW} more; `playhead verify` lists them"
        yield Text(more, style="interrupted")


def place_of(failure: Failure, folder: str) -> str:
    """Return the last line of the traceback in the user's own code, else its last line. Paths below the folder of the
    run are relative, as the places of calls are.
    """
    own = [line for line in failure.traceback if not any(part in line for part in _LIBRARIES)]
    place = (own or failure.traceback)[-1]
    return place.removeprefix(f"{folder}/") if folder else place


def _origin(story: Story, room: int) -> Iterator[str]:
    manifest = story.manifest
    if manifest.command:
        yield one_line(shlex.join(str(word) for word in manifest.command), room)
    facts = []
    if manifest.started_ns:
        age = words.age(manifest.started_ns, clock.wall_ns())
        facts.append(f"{words.date(manifest.started_ns)} ({age} ago)")
    if manifest.level != "full":
        facts.append(f"level {manifest.level}")
    facts += [f"{key}={value}" for key, value in manifest.tags.items()]
    if facts:
        yield one_line(" · ".join(facts), room)
    details = manifest.extra.get(DETAILS)
    for name, value in details.items() if isinstance(details, dict) else ():
        yield one_line(f"{name}: {words.compact(value)}", room)
    note = manifest.extra.get(NOTE)
    if isinstance(note, str) and note:
        yield one_line(f"note: {note}", room)


def foot_of(story: Story, width: int) -> Iterator[Text]:
    for sums in (_counts(story), _spent(story)):
        yield from (Text(line, style="quiet") for line in _joined(sums, width))
    totals = story.totals
    failed = [call for call in story.calls() if call.failure is not None]
    if failed:
        named = ", ".join(f"#{call.number}" for call in failed[:_FEW])
        more = f" and {len(failed) - _FEW} more" if len(failed) > _FEW else ""
        calls = "call" if len(failed) == 1 else "calls"
        yield Text(f"{len(failed)} {calls} failed: {named}{more}", style="failed")
    if totals.lost:
        yield Text(f"! {totals.lost} events could not be recorded", style="interrupted")
    if story.lost_file_changes:
        number = story.lost_file_changes
        noun = "change of a file" if number == 1 else "changes of files"
        yield Text(f"! {words.count(number)} {noun} could not be recorded", style="interrupted")
    if totals.holes:
        lines = "1 line is" if totals.holes == 1 else f"{totals.holes} lines are"
        yield Text(f"! not everything was recorded: {lines} marked with !", style="interrupted")


def _counts(story: Story) -> Iterator[str]:
    totals = story.totals
    yield _counted(totals.calls, "call")
    kinds = (
        (totals.llm_calls, "LLM", "LLM"),
        (totals.tool_calls, "tool", "tools"),
        (totals.process_calls, "process", "processes"),
        (totals.http_calls, "HTTP", "HTTP"),
    )
    yield from (f"{words.count(n)} {one if n == 1 else many}" for n, one, many in kinds if n)
    if totals.emitted:
        # `list` counts these. The tape has more: the start and the end of each process, readings of the clock.
        yield f"{_counted(totals.emitted, 'event')} emitted"
        yield f"{words.count(totals.events)} on the tape"
    else:
        yield _counted(totals.events, "event")


def _spent(story: Story) -> Iterator[str]:
    totals = story.totals
    if totals.tokens is not None:
        cached = totals.cache_read_tokens
        share = f" ({words.count(cached)} from cache)" if cached else ""
        out = words.count(totals.output_tokens)
        yield f"{words.count(totals.input_tokens)} tokens in{share}, {out} out"
    if totals.cost_usd is not None:
        yield words.money(totals.cost_usd, at_least=totals.unpriced > 0)
    elif totals.unpriced:
        yield "cost unknown"


def _counted(number: int, noun: str) -> str:
    return f"{words.count(number)} {noun}" if number == 1 else f"{words.count(number)} {noun}s"


def _joined(parts: Iterator[str], width: int) -> Iterator[str]:
    """Join parts with dots; lines break only between parts."""
    line = ""
    for part in parts:
        if line and len(line) + 3 + len(part) > width:
            yield line
            line = ""
        line = f"{line} · {part}" if line else part
    if line:
        yield line

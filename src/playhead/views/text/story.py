"""A run at a glance: how it ended, why, and the conversation as a tree. Knows the story's shape."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from playhead import events
from playhead.model import CallItem, Item, NoteItem, Story, TurnItem
from playhead.views.text import words
from playhead.views.text.console import GLYPHS, console
from playhead.views.text.labels import label, measure
from playhead.views.text.safe import one_line

# Libraries hooked and output printed are part of the tape, not of the story.
_BEHIND = frozenset({events.HOOK, events.OUTPUT, events.SNAPSHOT})


def print_story(story: Story, *, output: bool = False, limit: int = 0) -> None:
    out = console()
    width = min(out.width, 120)
    for line in _head(story, width):
        out.print(line, overflow="ellipsis", no_wrap=True)
    shown = 0
    for prefix, item in _walk(story, None, "", output):
        if limit and shown >= limit:
            rest = len(story.items) - shown
            out.print(Text(f"… {rest} more; `--limit 0` shows all", style="quiet"))
            break
        _line(out, prefix, label(item), measure(item), width)
        shown += 1
        if isinstance(item, TurnItem):
            _seams(out, prefix, item, width)
    for line in _foot(story):
        out.print(line)


def _head(story: Story, width: int) -> Iterator[Text]:
    manifest = story.manifest
    yield Text.assemble(
        (f"{GLYPHS[story.status]} ", story.status), (one_line(manifest.name, 60), "bold"), f"  {manifest.run}"
    )
    command = one_line(shlex.join(manifest.command), 60) if manifest.command else "in-process"
    began = f"{manifest.started_at[:19].replace('T', ' ')}Z" if manifest.started_at else ""
    yield Text(f"  {story.status} · {words.took(story.duration_ns)} · {began} · {command}", style="quiet")
    if manifest.tags:
        tags = " ".join(f"{key}={value}" for key, value in manifest.tags.items())
        yield Text(f"  {one_line(tags, width - 4)}", style="quiet")
    yield from _ending(story, width)
    yield Text("")


def _ending(story: Story, width: int) -> Iterator[Text]:
    """The one important thing first: why it failed, and how far it had come."""
    turn = story.items.get(story.failed_turn) if story.failed_turn else None
    if story.failure is not None:
        yield Text(f"  {one_line(f'{story.failure.type}: {story.failure.message}', width - 4)}", style="failed")
        if story.failure.traceback:
            yield Text(f"  at {one_line(story.failure.traceback[-1], width - 6)}", style="failed")
    if isinstance(turn, TurnItem):
        seam = f"last completed seam: {turn.last_seam}" if turn.last_seam else "before its first seam"
        ended = "failed" if turn.how == "raised" else "was under way"
        yield Text(f"  turn {one_line(turn.name, 40)} {ended}; {one_line(seam, 60)}", style="interrupted")
    for ref in story.in_flight[:5]:
        call = story.items[ref]
        if isinstance(call, CallItem) and story.status != "running":
            yield Text(
                f"  in flight at the end: #{call.number} {call.boundary} {one_line(call.name, width - 40)}",
                style="interrupted",
            )
    for problem in story.damage[:5]:
        yield Text(f"  ! damaged: {one_line(problem, width - 14)}", style="interrupted")


def _walk(story: Story, above: str | None, indent: str, output: bool) -> Iterator[tuple[str, Item]]:
    refs = [ref for ref in story.children.get(above, ()) if output or not _behind(story.items[ref])]
    for index, ref in enumerate(refs):
        last = index == len(refs) - 1
        top = above is None
        yield ("" if top else indent + ("└ " if last else "├ ")), story.items[ref]
        deeper = "" if top else indent + ("  " if last else "│ ")
        yield from _walk(story, ref, deeper, output)


def _behind(item: Item) -> bool:
    return isinstance(item, NoteItem) and item.kind in _BEHIND


def _line(out: Console, prefix: str, left: Text, right: Text, width: int) -> None:
    room = max(20, width - right.cell_len - 2 - len(prefix))
    left.truncate(room, overflow="ellipsis", pad=True)
    out.print(Text.assemble((prefix, "quiet"), left, "  ", right), no_wrap=True, overflow="crop")


def _seams(out: Console, prefix: str, turn: TurnItem, width: int) -> None:
    below = prefix.replace("├ ", "│ ").replace("└ ", "  ")
    for seam in turn.seams:
        _line(out, f"{below}· ", Text(one_line(seam.name, 60), style="ok"), Text(f"+{words.took(seam.took_ns)}", style="quiet"), width)
    if turn.failure is not None:
        shown = one_line(f"✗ {turn.failure.type}: {turn.failure.message}", width - len(below) - 2)
        out.print(Text.assemble((below, "quiet"), (shown, "failed")), no_wrap=True, overflow="ellipsis")


def _foot(story: Story) -> Iterator[Text]:
    totals = story.totals
    parts = [f"{words.count(totals.calls)} calls"]
    if totals.llm_calls:
        parts.append(f"{totals.llm_calls} LLM")
    if totals.tool_calls:
        parts.append(f"{totals.tool_calls} tools")
    if totals.process_calls:
        parts.append(f"{totals.process_calls} processes")
    if totals.tokens is not None:
        parts.append(f"{words.count(totals.input_tokens)} tokens in, {words.count(totals.output_tokens)} out")
    if totals.cost_usd is not None or totals.unpriced:
        cost = words.money(totals.cost_usd, at_least=totals.unpriced > 0 and totals.cost_usd is not None)
        parts.append(f"cost {'unknown' if totals.cost_usd is None else cost}")
    parts.append(f"{words.count(totals.events)} events")
    yield Text("")
    yield Text(" · ".join(parts), style="quiet")
    if totals.failures:
        yield Text(f"{totals.failures} calls failed", style="failed")
    if totals.lost:
        yield Text(f"! {totals.lost} events could not be recorded", style="interrupted")
    if totals.holes:
        yield Text(f"! {totals.holes} holes in the coverage: see the lines marked !", style="interrupted")

"""One item of a run in full: the five questions, what was asked, what came back. Pure: lines for a width."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from playhead.story import CallItem, Item, NoteItem, Story, TurnItem
from playhead.views.text import words
from playhead.views.text.call import fact_style, facts, sections, why
from playhead.views.text.labels import heading, reason
from playhead.views.text.safe import one_line
from playhead.views.text.values import pretty
from playhead.views.tui.rows import folded

_LABEL = 8
# A body of more than that is for `playhead show --full` and a pager.
_LONGEST = 200_000


def item_lines(story: Story, item: Item, width: int) -> list[Text]:
    lines = [heading(item, width), Text()]
    for title, text, style in _facts(story, item):
        lines += _fact(title, text, style, width)
    for title, body in _bodies(item):
        lines += [Text(), Text(one_line(title, width), style="name")]
        lines += folded(body[:_LONGEST], width, indent="  ") if body else []
        if len(body) > _LONGEST:
            lines.append(Text(f"  … {len(body) - _LONGEST:,} more characters", style="quiet"))
    return lines


def _fact(title: str, text: str, style: str, width: int) -> list[Text]:
    first, *rest = folded(text, width - _LABEL - 1, style=style)
    line = Text.assemble((f"{title:<{_LABEL}} ", "quiet"), first)
    return [line, *(Text.assemble(" " * (_LABEL + 1), more) for more in rest)]


def _facts(story: Story, item: Item) -> Iterator[tuple[str, str, str]]:
    if isinstance(item, CallItem):
        for title, text in facts(story, item):
            yield title, text, fact_style(title, item)
        return
    yield "who", f"{item.who or '?'}, lane {item.lane}", ""
    yield "what", item.name if isinstance(item, TurnItem) else item.kind, ""
    began = min((one.mono for one in story.items.values()), default=0)
    since = words.position(item.mono - began)
    took = ""
    if isinstance(item, TurnItem):
        took = f", took {words.took(item.took_ns)}" if item.how else ", never ended"
    yield "when", f"{words.moment(item.wall)}, {since} into the run{took}", ""
    yield "where", f"{item.at or '?'} (event {item.ref})", ""
    for step in _why(story, item):
        yield "why", step, "why"
    if isinstance(item, TurnItem) and item.failure is not None:
        yield "ended", f"{item.how}: {reason(item.failure)}", "failed"


def _why(story: Story, item: TurnItem | NoteItem) -> list[str]:
    said = item.purpose if isinstance(item, TurnItem) else item.why
    own = [said] if said else []
    above = story.items.get(item.parent or "")
    if above is None:
        return own
    return [*own, f"inside {heading(above, 200).plain}", *_chain(story, above)]


def _chain(story: Story, item: Item) -> list[str]:
    return why(story, item) if isinstance(item, CallItem) else []


def _bodies(item: Item) -> Iterator[tuple[str, str]]:
    if isinstance(item, CallItem):
        yield from sections(item, full=True)
    elif isinstance(item, TurnItem):
        if item.input is not None:
            yield "Input", pretty(item.input)
        for seam in item.seams:
            value = "" if seam.value is None else pretty(seam.value)
            yield f"◆ {seam.name} +{words.took(seam.took_ns)}", value
        if item.value is not None:
            yield "Result", pretty(item.value)
        if item.failure is not None and item.failure.traceback:
            yield "Traceback", "\n".join(item.failure.traceback)
    elif item.data is not None:
        yield "Data", pretty(item.data)

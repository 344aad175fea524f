"""A divergence in words: one line for lists and trees, and some lines with the nearest taped call and the differing
fields. The report of `replay`, the tree of a run, the terminal UI, the page and failing tests all use these.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from playhead.replay.matching.nearest import around
from playhead.replay.report.causes import WHY
from playhead.replay.report.divergence import place_of
from playhead.views.text.safe import clean, one_line
from playhead.views.text.words import compact

_MOST_FIELDS = 5
_PLAIN_WIDTH = 100


def divergence_title(one: Mapping[str, Any]) -> str:
    """Return what differs, on one line: `no taped call matches step 3: process printf`."""
    kind = one.get("kind")
    asked = one_line(f"{one.get('boundary')} {one.get('name')}", 100)
    if kind == "missed":
        times = f" ({one['times']} attempts)" if one.get("times") else ""
        return f"no taped call matches step {one.get('step')}: {asked}{times}"
    if kind == "unused":
        return f"taped call {one.get('step')} was never made: {asked}"
    return str(one.get("detail") or kind or "the replay differs from its tape")


def divergence_lines(
    one: Mapping[str, Any], width: int, *, number: int | None = None, advice: bool = True
) -> Iterator[Text]:
    """Yield the title, the place, the nearest taped call and the advice, each wrapped below its first column."""
    mark = "" if number is None else f"{number}. "
    titles = [str(one[WHY])] if one.get(WHY) else []
    first, *rest = [*titles, divergence_title(one)]
    yield from _wrapped(clean(first), width, mark, "failed")
    indent = " " * (3 if number is not None else 0)
    for title in rest:
        yield from _wrapped(clean(title), width, indent, "failed")
    if one.get("kind") not in ("missed", "unused"):
        return
    verb = "called" if one.get("kind") == "missed" else "recorded"
    place = place_of(one_line(str(one["at"]), 100)) if one.get("at") else "at an unknown place"
    lane = one_line(str(one.get("lane")), 40)
    yield from _wrapped(f"{verb} {place}, lane {lane}", width, indent, "quiet")
    near = one.get("nearest")
    if isinstance(near, dict):
        yield from _nearest(near, width, indent)
    if advice and one.get("advice"):
        yield from _wrapped(one_line(str(one["advice"]), 300), width, indent, "why")


def plain_divergence(one: Mapping[str, Any], *, number: int | None = None) -> str:
    """Return the lines as text, for messages of failing tests."""
    return "\n".join(line.plain for line in divergence_lines(one, _PLAIN_WIDTH, number=number))


def _nearest(near: dict[str, Any], width: int, indent: str) -> Iterator[Text]:
    served = " (served already)" if near.get("served") else ""
    name = one_line(str(near.get("name")), 80)
    yield from _wrapped(
        f"nearest is taped call {near.get('number')}{served}: {name}", width, indent
    )
    found = near.get("differences") or []
    if not found:
        said = "the request is the same, but the replay makes it more often than the recording"
        yield from _wrapped(said, width, f"{indent}  ", "quiet")
    for one in found[:_MOST_FIELDS]:
        taped, asked = around(_plain(one.get("taped")), _plain(one.get("asked")))
        yield from _wrapped(one_line(str(one.get("path")), 100), width, f"{indent}  ", "bold")
        yield from _wrapped(one_line(taped, 200), width, f"{indent}    - ", "failed")
        yield from _wrapped(one_line(asked, 200), width, f"{indent}    + ", "ok")


def _wrapped(text: str, width: int, first: str, style: str = "") -> Iterator[Text]:
    """Yield a text after `first`; what does not fit continues below its first character."""
    room = max(width - len(first), 20)
    for paragraph in text.splitlines() or [""]:
        for piece in textwrap.wrap(paragraph, room, break_on_hyphens=False) or [""]:
            yield Text(f"{first}{piece}", style=style)
            first = " " * len(first)


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else compact(value)

"""A run as blocks of a single-file page: the outline, and the items in groups. Pure.

A conversation is sent again with every request, so long texts are stored once, and a text that grows as its
difference. A group is self-contained: the page unpacks the group of the item that is shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from playhead.story import Story
from playhead.story.story_json import item_at
from playhead.views.web.outline import outline

# Characters of JSON in a group: unpacked in about ten milliseconds.
_LARGEST_GROUP = 2_000_000
_LONG = 48
# Shorter texts are stored whole: finding a difference is not worth the time.
_WORTH_COMPARING = 400
_LONGEST_SEARCH = 12
_TEXT, _QUOTED = "$t", "$q"


def run_blocks(story: Story, *, report: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the blocks for `viewer_files.standalone`. `report` is that of a replay."""
    tree = outline(story)
    groups = list(_groups(story, tree["refs"]))
    start = {
        "id": story.manifest.run,
        "groups": [row for row, _ in groups],
        "report": report is not None,
    }
    blocks: dict[str, Any] = {"start": start, "outline": tree}
    if report is not None:
        blocks["report"] = report
    return blocks | {f"detail-{number}": group for number, (_, group) in enumerate(groups)}


def _groups(story: Story, refs: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield groups with the row at which each begins."""
    first, packer = 0, Packer()
    items: dict[str, Any] = {}
    for row, ref in enumerate(refs):
        if "~" in ref:
            continue
        if packer.size > _LARGEST_GROUP:
            yield first, {"texts": packer.texts, "items": items}
            first, packer, items = row, Packer(), {}
        items[ref] = packer.pack(item_at(story, ref))
    yield first, {"texts": packer.texts, "items": items}


class Packer:
    """Moves long texts out of values; `static/packed.js` puts them back."""

    def __init__(self) -> None:
        self.size = 0
        # A text, or [index of an earlier text, length of the common prefix, of the common suffix, the rest].
        self.texts: list[str | list[Any]] = []
        self._whole: list[str] = []
        self._known: dict[str, int] = {}

    def pack(self, value: Any) -> Any:
        if isinstance(value, str):
            self.size += len(value) if len(value) <= _LONG else 8
            return value if len(value) <= _LONG else {_TEXT: self._index(value)}
        if isinstance(value, dict):
            packed = {str(name): self.pack(member) for name, member in value.items()}
            self.size += sum(len(name) + 4 for name in packed)
            return {_QUOTED: packed} if _TEXT in value or _QUOTED in value else packed
        if isinstance(value, (list, tuple)):
            self.size += len(value)
            return [self.pack(member) for member in value]
        self.size += 6
        return value

    def _index(self, text: str) -> int:
        known = self._known.get(text)
        if known is not None:
            return known
        index = self._known[text] = len(self._whole)
        kept = self._grown(text)
        self.size += len(kept if isinstance(kept, str) else kept[3]) + 16
        self._whole.append(text)
        self.texts.append(kept)
        return index

    def _grown(self, text: str) -> str | list[Any]:
        """Return `text` as a difference to a recent text, if most of it is the same."""
        best: list[Any] | None = None
        if len(text) < _WORTH_COMPARING:
            return text
        for base in range(len(self._whole) - 1, max(-1, len(self._whole) - _LONGEST_SEARCH), -1):
            old = self._whole[base]
            if len(old) < _WORTH_COMPARING:
                continue
            before = _shared(old, text)
            after = _shared(old[before:][::-1], text[before:][::-1])
            if (before + after) * 2 > len(text) and (best is None or before + after > best[4]):
                middle = text[before : len(text) - after]
                best = [base, before, after, middle, before + after]
        return text if best is None else best[:4]


def _shared(one: str, other: str) -> int:
    """Return the length of the common prefix, by bisection: comparing slices is fast."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low

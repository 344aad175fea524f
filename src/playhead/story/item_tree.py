"""Arrange items as a tree. Pure; a tape is untrusted, so its references may be wrong or circular."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from playhead.story.shape import Item

# Deeper than any program nests; a tape that claims more is drawn flat from here on, so that
# recursive readers of the tree do not overflow the stack.
DEEPEST = 100


def family(items: Mapping[str, Item]) -> dict[str | None, tuple[str, ...]]:
    """Return the children of each item in order of time; None is the top level.

    The parent of an item is the response that asked for it, else the item that encloses it.
    """
    above: dict[str, str | None] = {}
    for ref, item in items.items():
        cause = getattr(item, "cause", None)
        chosen = cause if cause in items else item.parent
        above[ref] = chosen if chosen in items and chosen != ref else None
    depths: dict[str, int] = {}
    # Where the children of an item go: under itself, or under the last ancestor that may have any.
    places: dict[str | None, str | None] = {None: None}
    children: dict[str | None, list[str]] = defaultdict(list)
    for ref in items:
        parent = above[ref]
        # Nearly always the enclosing item comes first.
        known = parent is None or parent in depths
        for one in (ref,) if known else _down_to(ref, above, depths):
            parent = above[one]
            depths[one] = 0 if parent is None else depths[parent] + 1
            places[one] = one if depths[one] < DEEPEST else places[parent]
        children[places[above[ref]]].append(ref)
    return {parent: tuple(below) for parent, below in children.items()}


def _down_to(ref: str, above: dict[str, str | None], known: dict[str, int]) -> list[str]:
    """Return `ref` and its unknown ancestors, highest first. A circle is cut."""
    path: list[str] = []
    seen: set[str] = set()
    at: str | None = ref
    while at is not None and at not in known:
        if at in seen:
            above[path[-1]] = None
            break
        path.append(at)
        seen.add(at)
        at = above[at]
    return path[::-1]

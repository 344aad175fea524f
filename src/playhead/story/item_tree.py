"""What stands under what. Pure; a tape is a stranger's, so its references may be anything."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from playhead.story.shape import Item

# Deeper than any program nests; a tape that claims more is drawn flat from here on, so that
# nobody who walks the tree has to fear for the stack.
DEEPEST = 100


def family(items: Mapping[str, Item]) -> dict[str | None, tuple[str, ...]]:
    """Children by parent, in order of time: under the response that asked for it, else under what
    encloses it, else (None) at the top. Each item stands in one place.
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
        # Nearly always what encloses an item stands before it.
        known = parent is None or parent in depths
        for one in (ref,) if known else _down_to(ref, above, depths):
            parent = above[one]
            depths[one] = 0 if parent is None else depths[parent] + 1
            places[one] = one if depths[one] < DEEPEST else places[parent]
        children[places[above[ref]]].append(ref)
    return {parent: tuple(below) for parent, below in children.items()}


def _down_to(ref: str, above: dict[str, str | None], known: dict[str, int]) -> list[str]:
    """`ref` and its ancestors that are not known yet, highest first. A circle is opened."""
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

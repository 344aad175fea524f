"""Align two sequences of steps, and measure how similar two texts are. Pure.

`difflib` alone is quadratic when the same few steps repeat, as they do in an agent's loop. So equal steps
that occur once are matched first, then other equal steps, and only the rest is aligned by kind.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from difflib import SequenceMatcher

# (index on the left, index on the right); None: the step has no partner on that side.
Pairing = tuple[int | None, int | None]

_WORD = re.compile(r"\w+|[^\w\s]")
# Maximum number of comparisons for the exact algorithm: about ten milliseconds.
_AFFORDABLE = 40_000


def align(
    left: Sequence[Hashable],
    right: Sequence[Hashable],
    kinds_left: Sequence[Hashable],
    kinds_right: Sequence[Hashable],
) -> list[Pairing]:
    """Return every index of both sides once, in order. Only steps of the same kind become partners."""
    pairs: list[Pairing] = []
    for i1, i2, j1, j2, equal in _blocks(left, right):
        if equal:
            pairs += zip(range(i1, i2), range(j1, j2), strict=True)
        else:
            gap = _by_kind(kinds_left[i1:i2], kinds_right[j1:j2])
            pairs += [
                (None if i is None else i1 + i, None if j is None else j1 + j) for i, j in gap
            ]
    return pairs


Block = tuple[int, int, int, int, bool]


def _blocks(left: Sequence[Hashable], right: Sequence[Hashable]) -> Iterator[Block]:
    """Yield stretches that are equal, and the gaps between them."""
    i = j = 0
    for i2, j2 in [*_anchors(left, right), (len(left), len(right))]:
        if i2 > i or j2 > j:
            yield from _between(left, right, (i, i2, j, j2))
        if i2 < len(left) and j2 < len(right):
            yield i2, i2 + 1, j2, j2 + 1, True
        i, j = i2 + 1, j2 + 1


def _anchors(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return steps that occur once in each run, as many as are in the same order: patience diff, as in `git diff`."""
    ours, theirs = Counter(left), Counter(right)
    places = {step: at for at, step in enumerate(right) if theirs[step] == 1}
    pairs = [(i, places[step]) for i, step in enumerate(left) if ours[step] == 1 and step in places]
    tops: list[int] = []
    chains: list[int] = []
    before: list[int] = []
    for at, (_, j) in enumerate(pairs):
        pile = bisect_left(tops, j)
        before.append(chains[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [j]
        chains[pile : pile + 1] = [at]
    found: list[tuple[int, int]] = []
    at = chains[-1] if chains else -1
    while at >= 0:
        found.append(pairs[at])
        at = before[at]
    return found[::-1]


def _between(
    left: Sequence[Hashable], right: Sequence[Hashable], gap: tuple[int, int, int, int]
) -> Iterator[Block]:
    i1, i2, j1, j2 = gap
    inner, other = left[i1:i2], right[j1:j2]
    if not inner or not other:
        yield i1, i2, j1, j2, False
        return
    # The heuristic drops very frequent steps: they are useless as anchors, and cost the most.
    matcher = SequenceMatcher(None, inner, other, autojunk=True)
    for tag, a1, a2, b1, b2 in matcher.get_opcodes():
        yield i1 + a1, i1 + a2, j1 + b1, j1 + b2, tag == "equal"


def _ends(left: Sequence[Hashable], right: Sequence[Hashable]) -> tuple[int, int]:
    """Return how many steps are equal at the beginning, and at the end of the rest."""
    most = min(len(left), len(right))
    head = 0
    while head < most and left[head] == right[head]:
        head += 1
    tail = 0
    while tail < most - head and left[-1 - tail] == right[-1 - tail]:
        tail += 1
    return head, tail


def _by_kind(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[Pairing]:
    if len(left) * len(right) > _AFFORDABLE:
        return _in_step(left, right)
    pairs: list[Pairing] = []
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            pairs += zip(range(i1, i2), range(j1, j2), strict=True)
        else:
            pairs += [(i, None) for i in range(i1, i2)]
            pairs += [(None, j) for j in range(j1, j2)]
    return pairs


def _in_step(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[Pairing]:
    """Pair long stretches side by side. After a difference, continue where the next equal step is."""
    pairs: list[Pairing] = []
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] == right[j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
            continue
        gone, come = _distance(left, i, right[j]), _distance(right, j, left[i])
        if come < gone:
            pairs += [(None, j + at) for at in range(come)]
            j += come
        elif gone < _FAR:
            pairs += [(i + at, None) for at in range(gone)]
            i += gone
        else:
            pairs += [(i, None), (None, j)]
            i, j = i + 1, j + 1
    pairs += [(at, None) for at in range(i, len(left))]
    pairs += [(None, at) for at in range(j, len(right))]
    return pairs


_FAR = 50


def _distance(steps: Sequence[Hashable], start: int, wanted: Hashable) -> int:
    """Return how far ahead the wanted step occurs next; `_FAR`: not within that distance."""
    for at in range(start, min(start + _FAR, len(steps))):
        if steps[at] == wanted:
            return at - start
    return _FAR


def alike(left: str, right: str) -> float:
    """Return the similarity of two texts, 0 to 1: twice the number of common words, in order, divided by all words."""
    if left == right:
        return 1.0
    ours, theirs = _WORD.findall(left), _WORD.findall(right)
    total = len(ours) + len(theirs)
    if not total:
        return 1.0
    head, tail = _ends(ours, theirs)
    middle, other = ours[head : len(ours) - tail], theirs[head : len(theirs) - tail]
    return 2.0 * (head + tail + _common(middle, other)) / total


def _common(left: list[str], right: list[str]) -> int:
    """Count common words, in order. For long texts the order is ignored, which is fast and gives an upper bound."""
    if not left or not right:
        return 0
    if len(left) * len(right) > _AFFORDABLE:
        return (Counter(left) & Counter(right)).total()
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    return sum(block.size for block in matcher.get_matching_blocks())

"""Taped calls that resemble a call, best first, with a score. Pure; knows texts, not modes.

The standard library alone: this runs inside the agent. `difflib` over characters is slow and, by
default, wrong on long texts; over words, without its heuristic, and only for the twenty candidates that
share most word triples, it is neither.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher

_WORD = re.compile(r"\w+|[^\w\s]")
_CANDIDATES = 20
# A triple that stands in every text tells none from another.
_TOO_COMMON = 2000
# In a long text every eighth triple is enough to find it by, and makes an index eight times as fast.
_LONG = 128
_SAMPLE = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """`key` is what `add` was given."""

    key: int
    score: float


class FuzzyIndex:
    """Texts by the word triples in them."""

    def __init__(self, texts: Iterable[tuple[int, str]] = ()) -> None:
        self._texts: dict[int, str] = {}
        self._by_triple: dict[int, list[int]] = {}
        for key, text in texts:
            self.add(key, text)

    def add(self, key: int, text: str) -> None:
        self._texts[key] = text
        for triple in _triples(text):
            self._by_triple.setdefault(triple, []).append(key)

    def like(
        self, text: str, threshold: float, *, among: Iterable[int] | None = None
    ) -> list[Likeness]:
        """Those at or over the threshold, best first; equal scores in order of their keys."""
        allowed = None if among is None else set(among)
        shared: Counter[int] = Counter()
        for triple in _triples(text):
            keys = self._by_triple.get(triple, ())
            if len(keys) <= _TOO_COMMON:
                shared.update(keys if allowed is None else (key for key in keys if key in allowed))
        chosen = [key for key, _ in shared.most_common(_CANDIDATES)]
        if not chosen:
            # Short texts (one word changed in three) may share no triple at all.
            chosen = sorted(self._texts if allowed is None else allowed)[:_CANDIDATES]
        words = _WORD.findall(text)
        found = [
            Likeness(key=key, score=similarity(words, _WORD.findall(self._texts[key])))
            for key in chosen
        ]
        return sorted(
            (one for one in found if one.score >= threshold), key=lambda one: (-one.score, one.key)
        )


def _triples(text: str) -> set[int]:
    """Three words in a row, as they stand between blanks: to find candidates, not to compare them."""
    words = text.split()
    if len(words) < 3:
        return {hash(tuple(words))}
    found = set(map(hash, zip(words, words[1:], words[2:], strict=False)))
    if len(words) < _LONG:
        return found
    return {one for one in found if not one & _SAMPLE}


def similarity(left: list[str], right: list[str]) -> float:
    """0 to 1: twice the words in common, in order, over all words."""
    if left == right:
        return 1.0
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    return matcher.ratio()


def likeness(left: str, right: str) -> float:
    """How alike two texts are, 0 to 1."""
    return similarity(_WORD.findall(left), _WORD.findall(right))

"""Encode the readings of one place in the code: steps instead of numbers, and a range where a loop only read the
clock. Pure; knows growing numbers, not their readers.

    3.5 | "9f86d0…"           a single reading, or frozen: {"$float": "7e-05"}
    {"ns": [a, s, s, …]}      seconds as floats: a, then steps, in nanoseconds
    {"int": [a, s, s, …]}     integers likewise
    {"between": [a, b, n]}    n readings of a loop that spun from a to b, in the unit of `as`
"""

from __future__ import annotations

from itertools import accumulate, chain, pairwise, repeat

from playhead.encoding.values import thaw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from operator import truediv
    from typing import Any
else:
    from _operator import truediv

_FEW = 3
# The maximum number of consecutive readings of one place that are all kept. A loop that prints its readings
# stays below that between two events; a loop that waits for a moment does not.
MOST_EXACT = 8192
_MOST_EXACT_SPINNING = 8


class ReadingRun:
    """The readings of one place since the last event. Of a long run only the first and last are kept."""

    __slots__ = ("_exact", "_last", "_most", "_skipped")

    def __init__(self, *, is_clock: bool, spins: bool = False) -> None:
        self._most = (_MOST_EXACT_SPINNING if spins else MOST_EXACT) if is_clock else None
        self._exact: list[Any] = []
        # The last two: the reading that continued the loop, and the one that ended it.
        self._last: list[Any] = []
        self._skipped = 0

    def add(self, values: list[Any]) -> None:
        room = len(values) if self._most is None else self._most - len(self._exact)
        self._exact += values[:room]
        if len(values) > room:
            rest = self._last + values[room:]
            self._skipped += max(0, len(rest) - 2)
            self._last = rest[-2:]

    @property
    def count(self) -> int:
        return len(self._exact) + self._skipped + len(self._last)

    def packed(self) -> list[Any]:
        if not self._skipped:
            return pack(self._exact + self._last)
        ends = _integers([self._exact[-1], self._last[0]])
        if ends is None:
            return pack(self._exact + self._last)
        unit, (start, end) = ends
        line = {"between": [start, end, self._skipped], "as": unit}
        return [*pack(self._exact), line, *pack(self._last)]


def pack(values: list[Any]) -> list[Any]:
    """Encode readings: the inverse of `unpack`."""
    found = _integers(values) if len(values) > _FEW else None
    if found is None:
        return values
    unit, numbers = found
    return [{unit: [numbers[0], *(b - a for a, b in pairwise(numbers))]}]


def unpack(items: Iterable[Any]) -> Iterator[Any]:
    """Return an iterator over every reading. A million readings cost no memory. Uses C iterators, because programs read
    clocks in loops.
    """
    return chain.from_iterable(map(_unpacked, items))


def _unpacked(item: Any) -> Iterable[Any]:
    kind = type(item)
    if kind is list or (kind is dict and next(iter(item), "")[:1] == "$"):
        return (thaw(item),)  # JSON cannot hold it exactly: a number near zero, a state
    if kind is not dict:
        return (item,)
    if len(line := _numbers(item.get("between"))) == 3:
        return _spread(line, str(item.get("as")))
    seconds = map(truediv, accumulate(_numbers(item.get("ns"))), repeat(1e9))
    return chain(seconds, accumulate(_numbers(item.get("int"))))


def _numbers(found: Any) -> list[int]:
    """Return the numbers of a row, checked, because a tape is untrusted data."""
    return found if isinstance(found, list) and all(type(one) is int for one in found) else []


def _spread(line: list[int], unit: str) -> Iterator[Any]:
    start, end, count = line
    return (_reading(start + (end - start) * n // (count + 1), unit) for n in range(1, count + 1))


def _reading(number: int, unit: str) -> Any:
    return number / 1e9 if unit == "ns" else number


def _integers(values: list[Any]) -> tuple[str, list[int]] | None:
    """Return the values as integers, if the conversion is exact to the last bit."""
    kinds = set(map(type, values))
    if kinds == {int}:
        return "int", values
    if kinds != {float}:
        return None
    try:
        # CPython makes its floats from nanoseconds by this very division.
        numbers = [round(value * 1e9) for value in values]
    except (OverflowError, ValueError):
        return None
    are_same = all(n / 1e9 == v for n, v in zip(numbers, values, strict=True))
    return ("ns", numbers) if are_same else None

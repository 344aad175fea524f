"""Many ordered sources to one. Knows keys and order; not what is merged.

Not `heapq.merge`: that asks every source for its first item at once, and a run may have started
thousands of processes one after the other. Here a source is opened when its turn comes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
# generation, monotonic ns, pid, seq
Key = tuple[int, int, int, int]
# The key that nothing in the source comes before, and how to open it.
Source = tuple[Key, Callable[[], Iterator[tuple[Key, T]]]]


def merge(sources: Sequence[Source[T]]) -> Iterator[T]:
    """All items by key. Items of one source never overtake each other, whatever their keys say."""
    # Last first, so that the next one is popped off the end. The index settles equal keys.
    waiting = sorted(
        ((first, index, opened) for index, (first, opened) in enumerate(sources)), reverse=True
    )
    heap: list[tuple[Key, int, T, Iterator[tuple[Key, T]]]] = []
    while heap or waiting:
        while waiting and (not heap or waiting[-1][0] <= heap[0][0]):
            _, index, opened = waiting.pop()
            _push(heap, index, opened())
        if not heap:
            continue
        _, index, item, items = heapq.heappop(heap)
        yield item
        # As long as this source stays ahead of all others, no heap is needed.
        for key, item in items:
            if (heap and heap[0][0] < key) or (waiting and waiting[-1][0] <= key):
                heapq.heappush(heap, (key, index, item, items))
                break
            yield item


def _push(
    heap: list[tuple[Key, int, T, Iterator[tuple[Key, T]]]],
    index: int,
    items: Iterator[tuple[Key, T]],
) -> None:
    for key, item in items:
        heapq.heappush(heap, (key, index, item, items))
        return

"""Read the rows of a whole tape, merged into one order from plain and sealed segments."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from playhead.events import Event
from playhead.host.later import Later
from playhead.tape.format import FORMAT_VERSION, Decode, decoder_for, segment_in
from playhead.tape.reading.segment_rows import (
    Report,
    Row,
    Strand,
    batches,
    blocks,
    read_merged,
    read_segment,
)
from playhead.tape.reading.segments import Segment, plain_decoder

if TYPE_CHECKING:
    from playhead.tape.sealed import sealed_reader
else:
    sealed_reader = Later("playhead.tape.sealed.sealed_reader")  # a plain tape is read without zstd

T = TypeVar("T")
# generation, monotonic ns, pid, seq
Key = tuple[int, int, int, int]
# A lower bound for the keys of the source, and the function that opens it.
Source = tuple[Key, Callable[[], Iterator[tuple[Key, T]]]]


def merge(sources: Sequence[Source[T]]) -> Iterator[T]:
    """Yield all items by key. Items of one source never overtake each other, whatever their keys are."""
    # In reverse order, so that the next one is popped off the end. The index decides between equal keys.
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


def tape_rows(segments: list[Segment], report: Report) -> Iterator[Row]:
    """Yield all rows by (generation, monotonic ns, pid, seq), in constant memory."""
    plain = [segment for segment in segments if not segment.sealed]
    sealed = [segment for segment in segments if segment.sealed]
    if len(plain) == 1 and not sealed:
        return plain_rows(plain[0], report)
    if sealed and not plain:
        return sealed_rows(sealed, frozenset(), report)
    sources = [keyed(partial(plain_rows, one, report), [one]) for one in plain]
    if sealed:
        but = frozenset(one.name for one in plain)
        sources.append(keyed(partial(sealed_rows, sealed, but, report), sealed))
    return merge(sources)


def plain_rows(segment: Segment, report: Report) -> Iterator[Row]:
    decode = plain_decoder(segment)
    return read_segment(batches(blocks(segment.path)), Strand(segment.name), decode, report)


def sealed_rows(sealed: list[Segment], but: frozenset[str], report: Report) -> Iterator[Row]:
    """Yield the rows of the sealed file, except for segments that have a file of their own."""
    path = sealed[0].path
    content = (raw for _, _, raw in sealed_reader.frames_of(path, report))
    decode = _decoder_of_all({segment.name: segment.format for segment in sealed})
    rows = read_merged(batches(content), path.name, decode, report)
    return rows if not but else (row for row in rows if row[0].segment not in but)


def keyed(opened: Callable[[], Iterator[Row]], segments: list[Segment]) -> Source[Row]:
    """Return a source for `merge` with the rows of these segments; `opened` is called when its first row is needed."""
    generations = {segment.name: segment.generation for segment in segments}

    def rows() -> Iterator[tuple[Key, Row]]:
        for row in opened():
            event = row[0]
            yield (generations.get(event.segment, 0), event.mono, event.pid, event.seq), row

    return (*min(segment.order for segment in segments), 0), rows


def _decoder_of_all(formats: dict[str, int]) -> Decode:
    """Return a decoder for a file whose segments may have different formats."""
    decoders = {version: decoder_for(version) for version in {*formats.values(), FORMAT_VERSION}}
    current = decoders[FORMAT_VERSION]
    if len(decoders) == 1:
        return current

    def decode(line: bytes) -> Event:
        version = formats.get(segment_in(line), FORMAT_VERSION)
        return decoders[version](line)

    return decode

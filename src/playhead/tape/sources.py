"""Rows of a whole tape from its files, merged. Knows plain and sealed segments; not what is done
with the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from playhead.events import Event
from playhead.tape.format import FORMAT_VERSION, Decode
from playhead.tape.lines import batches, blocks
from playhead.tape.merge import Key, Source, merge
from playhead.tape.migrate import decoder_for, segment_in
from playhead.tape.rows import Report, Row, Strand, read_merged, read_segment
from playhead.tape.sealed.sealed_reader import frames_of
from playhead.tape.segments import Segment


def tape_rows(segments: list[Segment], report: Report) -> Iterator[Row]:
    """All rows by (generation, monotonic ns, pid, seq), in constant memory."""
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
    decode = decoder_for(segment.format)
    return read_segment(batches(blocks(segment.path)), Strand(segment.name), decode, report)


def sealed_rows(sealed: list[Segment], but: frozenset[str], report: Report) -> Iterator[Row]:
    """What the sealed file holds, but for segments that have a file of their own."""
    path = sealed[0].path
    content = (raw for _, _, raw in frames_of(path, report))
    decode = _decoder_of_all({segment.name: segment.format for segment in sealed})
    rows = read_merged(batches(content), path.name, decode, report)
    return rows if not but else (row for row in rows if row[0].segment not in but)


def keyed(opened: Callable[[], Iterator[Row]], segments: list[Segment]) -> Source[Row]:
    """Rows of these segments as `merge` wants them; `opened` when their turn comes."""
    generations = {segment.name: segment.generation for segment in segments}

    def rows() -> Iterator[tuple[Key, Row]]:
        for row in opened():
            event = row[0]
            yield (generations.get(event.segment, 0), event.mono, event.pid, event.seq), row

    return (*min(segment.order for segment in segments), 0), rows


def _decoder_of_all(formats: dict[str, int]) -> Decode:
    """For a file whose segments may have been written in different formats."""
    decoders = {version: decoder_for(version) for version in {*formats.values(), FORMAT_VERSION}}
    current = decoders[FORMAT_VERSION]
    if len(decoders) == 1:
        return current

    def decode(line: bytes) -> Event:
        version = formats.get(segment_in(line), FORMAT_VERSION)
        return decoders[version](line)

    return decode

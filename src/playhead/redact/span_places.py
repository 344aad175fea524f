"""Places of secrets and of texts in bytes. Knows positions; does not know what a secret is."""

from __future__ import annotations

from _bisect import bisect_right  # the C module alone: every recorded process loads it

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# start, end, kind
Span = tuple[int, int, str]
_TEXT = bytes(97 if 32 <= c < 127 or c in b"\t\r\n" else 32 for c in range(256))
_SHORTEST_ISLAND = 12
_ISLAND = b"a" * _SHORTEST_ISLAND


def islands(raw: bytes) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each text in binary data: at least twelve printable characters in a row."""
    texts = raw.translate(_TEXT)
    at = texts.find(_ISLAND)
    while at >= 0:
        end = texts.find(b" ", at + _SHORTEST_ISLAND)
        if end < 0:
            end = len(raw)
        yield at, end
        at = texts.find(_ISLAND, end)


def literally(raw: bytes, values: dict[bytes, str]) -> Iterator[Span]:
    """Yield the places of these values, each with its kind."""
    for value, kind in values.items():
        at = raw.find(value)
        while at >= 0:
            yield (at, at + len(value), kind)
            at = raw.find(value, at + len(value))


def with_escapes(found: list[Span], shifts: list[tuple[int, int]]) -> Iterator[Span]:
    """Yield secrets of a text without escapes by their places in the text with the escapes."""
    places = [at for at, _ in shifts]

    def place(at: int) -> int:
        return at + shifts[bisect_right(places, at) - 1][1]

    for start, end, kind in found:
        yield (place(start), place(end), kind)


def apart(found: list[Span]) -> list[Span]:
    """Return the spans in order, with overlapping ones joined: the larger secret hides the smaller."""
    if len(found) < 2:
        return found
    kept: list[Span] = []
    for start, end, kind in sorted(found, key=lambda span: (span[0], -span[1])):
        if kept and start < kept[-1][1]:
            if end > kept[-1][1]:
                kept[-1] = (kept[-1][0], end, kept[-1][2])
            continue
        kept.append((start, end, kind))
    return kept

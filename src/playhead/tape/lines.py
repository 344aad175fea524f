"""Bytes to lines in bounded memory. Knows files, newlines and the longest line; not what it says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from playhead.errors import StoreError
from playhead.tape.format import LONGEST_LINE

# Measured on events of 4.5 KB: 64 and 128 KiB are level, 256 KiB and more cost some 8 % again.
BLOCK = 128 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Lines that follow each other, without their newlines.

    A batch rather than a line is what is handed on: one call for some fifty events.
    """

    lines: list[bytes]
    # The file ended before the newline of the only line here.
    torn: bool = False
    # The length of one line that was too long to be kept; `lines` is empty then.
    skipped: int = 0


def blocks(path: Path, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
    """The bytes of a file from `start` up to `stop`; without one, up to where it ends by then."""
    try:
        with open(path, "rb", buffering=0) as file:
            file.seek(start)
            left = -1 if stop is None else stop - start
            while left:
                block = file.read(BLOCK if left < 0 else min(BLOCK, left))
                if not block:
                    return
                left -= len(block) if left > 0 else 0
                yield block
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({error.strerror or error}).") from error


def batches(pieces: Iterable[bytes]) -> Iterator[Batch]:
    """Cut a stream of bytes into lines, holding at most one block and one line of it."""
    held: list[bytes] = []
    size = 0
    skipping = False
    for block in pieces:
        cut = block.rfind(b"\n") + 1
        if not cut:
            size += len(block)
            if skipping or size > LONGEST_LINE:
                skipping = True
                held.clear()
            else:
                held.append(block)
            continue
        first = 0
        if skipping:
            first = block.find(b"\n") + 1
            yield Batch(lines=[], skipped=size + first - 1)
            skipping = False
        held.append(block[first:cut])
        lines = b"".join(held).split(b"\n")
        lines.pop()
        if lines and len(lines[0]) > LONGEST_LINE:
            yield Batch(lines=[], skipped=len(lines.pop(0)))
        if lines:
            yield Batch(lines=lines)
        held = [block[cut:]]
        size = len(block) - cut
    if skipping:
        yield Batch(lines=[], skipped=size, torn=True)
    elif size:
        yield Batch(lines=[b"".join(held)], torn=True)

"""Compare the native core with Python on the status of real files, most of them as their row says."""

from __future__ import annotations

import os
import random
from pathlib import Path

from playhead.host import native_core
from playhead.workspace import known_files
from playhead.workspace.known_files import _ROW, compare_status, stat_row

_ODD = (b"new\nline", b"\xff\xfe", b"-", b" ", b"x" * 255)


def make_files(folder: Path) -> list[bytes]:
    """Make files of every kind that a row can describe."""
    root = os.fsencode(folder)
    paths = [b"d/deep", b"d", b"", *_ODD, *(b"d/%d" % n for n in range(20))]
    os.makedirs(os.path.join(root, b"d/deep"))
    for path in paths[3:]:
        with open(os.path.join(root, path), "wb") as file:
            file.write(path * 3)
    os.symlink(b"nowhere", os.path.join(root, b"link"))
    os.mkfifo(os.path.join(root, b"fifo"))
    os.link(os.path.join(root, b"d/1"), os.path.join(root, b"other name"))
    os.utime(os.path.join(root, b"d/2"), ns=(0, -5_000_000_001))  # before 1970
    os.utime(os.path.join(root, b"d/3"), ns=(0, 2**40 * 1_000))
    os.truncate(os.path.join(root, b"d/4"), 2**33)
    return [*paths, b"link", b"fifo", b"other name"]


def compare_statuses(folder: Path, count: int, seed: int) -> int:
    """Return how many flags were compared."""
    rng = random.Random(seed)
    paths = make_files(folder)
    start = os.fsencode(folder) + b"/"
    rows = {path: stat_row(os.lstat(start + path)) for path in paths}
    compared = 0
    for _ in range(count):
        chosen = rng.choices(
            [*paths, b"missing", b"d/0/below a file", b"y" * 5000], k=rng.randrange(12)
        )
        packed = []
        for path in chosen:
            row = list(rows.get(path, (0, 0, 0, 0, 0)))
            if rng.random() < 0.2:
                row[rng.randrange(5)] ^= 1 << rng.randrange(30)
            packed.append(_ROW.pack(*row))
        given = start, b"".join(path + b"\0" for path in chosen), b"".join(packed)
        found, expected = native_core.core.compare_status(*given), compare_status(*given)
        assert found == expected, (chosen, found, expected)
        compared += len(found)
    assert {known_files.SAME, known_files.LINKED} <= set(
        compare_status(
            start, b"d/0\0d/1\0", b"".join(_ROW.pack(*rows[p]) for p in (b"d/0", b"d/1"))
        )
    )
    return compared

"""The format's number, the names of a tape's files, and which segments are sealed.

Separate from `format`, because every recorded process loads this module and must start quickly.
"""

from __future__ import annotations

import os

from playhead.encoding.jsonbytes import loads
from playhead.host.private_files import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


# When this changes: a step in `migrate.STEPS`, a golden tape in tests/tapes/, docs/tape-format.md,
# CHANGELOG.md.
FORMAT_VERSION = 2

SEGMENT_PREFIX = "tape-"
SEGMENT_SUFFIX = ".jsonl"
SEALED_FILE = "tape.jsonl.zst"
INDEX_FILE = "tape.index.json"
# A tape in one text file, and a run with its files in one archive.
SINGLE_SUFFIX = ".tape.jsonl"
BUNDLE_SUFFIX = ".playhead.zip"
_LARGEST_INDEX = 256 * 1024 * 1024


def sealed_segments(run: Path | str) -> dict[str, int]:
    """Return the last seq of each sealed segment by name; empty if nothing is sealed, or nothing is known."""
    try:
        members = loads(read_regular(os.path.join(run, INDEX_FILE), _LARGEST_INDEX).decode())
        return {str(one["name"]): int(one["last"]) for one in members["segments"]}
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return {}

"""The format's number and the names of a tape's files: what a process must know to write one. Apart from
`format`, whose patterns and decoders would cost every process of a run its start.
"""

from __future__ import annotations

# When this changes: a step in `migrate.STEPS`, a golden tape in tests/tapes/, docs/tape-format.md,
# CHANGELOG.md.
FORMAT_VERSION = 2

SEGMENT_PREFIX = "tape-"
SEGMENT_SUFFIX = ".jsonl"
SEALED_FILE = "tape.jsonl.zst"
INDEX_FILE = "tape.index.json"

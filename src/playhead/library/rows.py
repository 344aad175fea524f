"""A run as the catalogue has it before its tape was read: what its manifest says. Pure, but for asking
whether a run that claims to go on still does.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from playhead.errors import PlayheadError
from playhead.library.golden import is_golden
from playhead.library.shelf import Shelf
from playhead.tape.manifest import NOTE, Manifest, SegmentSummary, status_of

# Times from a stranger's manifest: what a database can hold, and the year 2262.
_LATEST_NS = 2**63 - 10_000_000
_LARGEST = 2**62
# Runs that began in the same nanosecond get numbers that follow each other.
_NEAR_NS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What runs are filtered and sorted by, and the manifest whole. `claims`: it says that it goes on."""

    id: str
    stamp: str
    started_ns: int
    status: str
    claims: bool = False
    project: str = ""
    name: str = "?"
    replay_of: str | None = None
    keep: bool = False
    golden: bool = False
    duration_s: float | None = None
    problem: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    # As JSON, and as it was read; empty where it cannot be.
    manifest: bytes = b""
    told: Manifest | None = None


def row_of(shelf: Shelf, run_id: str, stamp: str) -> Row:
    """A manifest as a row. One that cannot be read becomes a row that says why."""
    try:
        manifest = shelf.manifest(run_id)
        raw = json.dumps(_members(manifest)).encode()
    except (PlayheadError, ValueError) as error:
        at = shelf.changed_ns(run_id)
        return Row(
            id=run_id, stamp=stamp, started_ns=at, status="interrupted", problem=plain(str(error))
        )
    return Row(
        id=run_id,
        stamp=stamp,
        started_ns=min(max(manifest.started_ns, 0), _LATEST_NS),
        status=status_of(manifest),
        claims=manifest.status == "running",
        project=plain(manifest.project),
        name=plain(manifest.name),
        replay_of=None if manifest.replay_of is None else plain(manifest.replay_of),
        keep=manifest.keep,
        golden=is_golden(manifest),
        duration_s=_seconds(manifest.duration_s),
        tags={plain(str(key)): plain(str(value)) for key, value in manifest.tags.items()},
        manifest=raw,
        told=manifest,
    )


def plain(text: str) -> str:
    """No half of a character, and no NUL: a database takes none, or ends there."""
    if "\0" in text:
        text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def whole(number: int | None) -> int | None:
    """As large as a database can hold: a stranger's tape may claim any number."""
    return None if number is None else min(max(number, -_LARGEST), _LARGEST)


def _seconds(took: float | None) -> float | None:
    return None if took is None else float(min(max(took, 0), _LARGEST))


def note_of(manifest: Manifest) -> str:
    said = manifest.extra.get(NOTE)
    return said if isinstance(said, str) else ""


def numbered(
    rows: Iterable[Row], known: Mapping[str, int], taken: Container[int]
) -> Iterator[tuple[int, Row]]:
    """Each row with its number in the catalogue: the moment it began, or the next that is free. So
    numbers sort as runs do by age, in every index that has them.
    """
    given: set[int] = set()
    for row in rows:
        number = known.get(row.id)
        if number is None or not is_near(number, row):
            number = row.started_ns
            while number in taken or number in given:
                number += 1
        given.add(number)
        yield number, row


def is_near(number: int, row: Row) -> bool:
    """Whether this number still says when the run began."""
    return 0 <= number - row.started_ns < _NEAR_NS


def _members(manifest: Manifest) -> dict[str, Any]:
    """As `asdict` would have it, in a tenth of the time: there may be ten thousand to read."""
    members = {name: getattr(manifest, name) for name in Manifest.__slots__}
    members["segments"] = [
        {name: getattr(one, name) for name in SegmentSummary.__slots__} for one in manifest.segments
    ]
    return {**members, **members.pop("extra")}

"""A run as the catalogue stores it: the row made from its manifest, its summary, and the golden mark.

Pure, but for reading small files. Does not read tapes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from playhead._version import __version__
from playhead.errors import PlayheadError
from playhead.host.private_files import file_of
from playhead.tape.annotations import FILE as MARKS
from playhead.tape.layout import SINGLE_SUFFIX
from playhead.tape.manifest import AUTHORS, COMMENTS, NOTE, Manifest, SegmentSummary, status_of
from playhead.tape.store import MANIFEST

if TYPE_CHECKING:
    from playhead.library.shelf import Shelf


# Times come from an untrusted manifest: limit them to what a database can hold (the year 2262).
_LATEST_NS = 2**63 - 10_000_000
_LARGEST = 2**62
# Runs that began in the same nanosecond get successive numbers.
_NEAR_NS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """The columns by which runs are filtered and sorted, and the whole manifest. `claims`: the manifest says that
    the run is in progress.
    """

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
    # JSON, as read from the file; empty if it cannot be read.
    manifest: bytes = b""
    parsed: Manifest | None = None


def row_of(shelf: Shelf, run_id: str, stamp: str) -> RunRow:
    """Return a manifest as a row. An unreadable one becomes a row with the reason."""
    try:
        manifest = shelf.manifest(run_id)
        raw = json.dumps(_members(manifest)).encode()
    except (PlayheadError, ValueError) as error:
        at = shelf.changed_ns(run_id)
        return RunRow(
            id=run_id, stamp=stamp, started_ns=at, status="interrupted", problem=plain(str(error))
        )
    return RunRow(
        id=run_id,
        stamp=stamp,
        started_ns=min(max(manifest.started_ns, 0), _LATEST_NS),
        status=plain(status_of(manifest)),
        claims=manifest.status == "running",
        project=plain(manifest.project),
        name=plain(manifest.name),
        replay_of=None if manifest.replay_of is None else plain(manifest.replay_of),
        keep=manifest.keep,
        golden=is_golden(manifest),
        duration_s=_seconds(manifest.duration_s),
        tags={plain(str(key)): plain(str(value)) for key, value in manifest.tags.items()},
        manifest=raw,
        parsed=manifest,
    )


def plain(text: str) -> str:
    """Replace NUL and halves of surrogate pairs: a database refuses them, or ends the text there."""
    if "\0" in text:
        text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def whole(number: int | None) -> int | None:
    """Limit a number to what a database can hold: the tape of a stranger may contain any number."""
    return None if number is None else min(max(number, -_LARGEST), _LARGEST)


def _seconds(took: float | None) -> float | None:
    return None if took is None else float(min(max(took, 0), _LARGEST))


def note_of(manifest: Manifest) -> str:
    said = manifest.extra.get(NOTE)
    return said if isinstance(said, str) else ""


def comments_of(manifest: Manifest) -> list[dict[str, str]]:
    """Return the comments, oldest first: id, by, at, text. The manifest may be another person's."""
    found = manifest.extra.get(COMMENTS)
    names = ("id", "by", "at", "text")
    return [
        {name: one[name] for name in names}
        for one in (found if isinstance(found, list) else ())
        if isinstance(one, dict) and all(isinstance(one.get(name), str) for name in names)
    ]


def authors_of(manifest: Manifest) -> dict[str, Any]:
    """Return who changed what and when: {"tags.env": {"by": "Ada", "at": …}}."""
    found = manifest.extra.get(AUTHORS)
    return found if isinstance(found, dict) else {}


def numbered(
    rows: Iterable[RunRow], known: Mapping[str, int], taken: Container[int]
) -> Iterator[tuple[int, RunRow]]:
    """Return each row with its number in the catalogue: its start time, or the next free number. So numbers have the
    same order as the ages of runs, in every index that contains them.
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


def is_near(number: int, row: RunRow) -> bool:
    """Return whether this number still matches the start time of the run."""
    return 0 <= number - row.started_ns < _NEAR_NS


def _members(manifest: Manifest) -> dict[str, Any]:
    """Return the same as `asdict`, in a tenth of the time: there may be ten thousand manifests."""
    members = {name: getattr(manifest, name) for name in Manifest.__slots__}
    members["segments"] = [
        {name: getattr(one, name) for name in SegmentSummary.__slots__} for one in manifest.segments
    ]
    return {**members, **members.pop("extra")}


_FACTS = (MANIFEST, MARKS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """None: unknown. A cost is a lower bound where `unpriced` calls exist."""

    events: int = 0
    calls: int = 0
    llm_calls: int = 0
    tool_calls: int = 0
    failures: int = 0
    failed_turns: int = 0
    emitted: int = 0
    tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    unpriced: int = 0
    lost: int = 0
    holes: int = 0
    failure: str | None = None
    last_seam: str | None = None
    duration_s: float | None = None


def encode_summary(state: str, summary: Summary) -> bytes:
    """Encode a summary for the catalogue, with the state of the tape from which it was made."""
    members = {"state": state, **{name: getattr(summary, name) for name in Summary.__slots__}}
    return json.dumps(members).encode("utf-8", "backslashreplace")


def decode_summary(raw: bytes, state: str | None = None) -> Summary | None:
    """Decode a summary. None: it cannot be read, or was made from another state."""
    try:
        members = json.loads(raw)
        made_of = members.pop("state", None)
        return Summary(**members) if state is None or made_of == state else None
    except (AttributeError, TypeError, ValueError):
        return None


def stamp_of(run: Path | str, prices: str) -> str:
    """Return a stamp that changes with the manifest, a segment or the prices. A process that outlives its run
    appends to a tape whose manifest is already written, so the segments themselves are checked.
    """
    segments = size = manifest = 0
    try:
        with os.scandir(run) as files:
            for file in files:
                if file.name.startswith("tape"):
                    segments += 1
                    size += file.stat().st_size
                elif file.name in _FACTS:
                    manifest += file.stat().st_mtime_ns
    except OSError:
        return ""
    return f"{manifest} {segments} {size} {prices}"


def stamp_of_prices(overrides: Mapping[str, Any]) -> str:
    """Return a stamp that changes with the user's own prices, the installed prices, and our way of counting."""
    own = crc32(json.dumps(overrides, sort_keys=True, default=str).encode())
    spec = find_spec("genai_prices")
    try:
        installed = Path(spec.origin).stat().st_mtime_ns if spec and spec.origin else 0
    except OSError:
        installed = 0
    return f"{__version__} {own:x} {installed}"


TAG = "golden"
SUPERSEDES = "supersedes"
# Folders that contain no tapes and take long to search.
_NOT_LOOKED_AT = frozenset({"node_modules", "__pycache__", "site-packages", "venv"})


def is_golden(manifest: Manifest) -> bool:
    if manifest.tags.get(TAG) != "true":
        return False
    return manifest.replay_of is None or SUPERSEDES in manifest.extra


def tapes_of(folder: Path, run_id: str) -> list[Path]:
    """Return the single-file tapes below a folder that were made from this run."""
    return [path for path in single_tapes(folder) if id_of(path) == run_id]


def single_tapes(folder: Path) -> Iterator[Path]:
    """Return single-file tapes, sorted; hidden folders and folders of packages are skipped."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(
            one for one in folders if not one.startswith(".") and one not in _NOT_LOOKED_AT
        )
        yield from (Path(place, one) for one in sorted(files) if one.endswith(SINGLE_SUFFIX))


def id_of(path: Path) -> str | None:
    """Return the run from which a single-file tape was made. None: the tape does not name it."""
    said = head_of(path).get("run")
    return said if isinstance(said, str) else None


def head_of(path: Path) -> dict[str, object]:
    """Return the first line of a single-file tape; empty: it cannot be read."""
    try:
        with file_of(path.resolve()) as file:
            head = json.loads(file.readline(1_000_000))
    except (OSError, ValueError, RecursionError):
        return {}
    return head if isinstance(head, dict) else {}

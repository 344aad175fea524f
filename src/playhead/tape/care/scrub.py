"""Remove texts from an existing tape: from every line, blob and name of the run. Knows lines, blobs and the manifest;
the redactor knows which texts to remove.

Apart from the texts, the run stays the same: the same events with the same numbers, and valid checksums. A secret that
was split between two chunks of a stream is found only in its parts.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playhead.errors import UsageError
from playhead.host.private_files import create_part, file_of, replace_file
from playhead.redact import Redactor
from playhead.tape.annotations import FILE as MARKS
from playhead.tape.blobs import SPILLED, blob_path, pull, spill, unspill
from playhead.tape.care import signature
from playhead.tape.care.verify import refuse_live, verify
from playhead.tape.format import close_line, open_line
from playhead.tape.layout import SEALED_FILE
from playhead.tape.manifest import SegmentSummary, read_manifest, write_manifest
from playhead.tape.reader import Tape
from playhead.tape.sealed.seal import seal, unseal

_NAMED = re.compile(rb'"\$blob": ?"([0-9a-f]{64})"')
_BESIDE = ("at", "who", "why", "lane")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrubbed:
    """The result of a scrub: how much was changed."""

    events: int
    blobs: int
    manifest: bool


def scrub(run: Path, redactor: Redactor) -> Scrubbed:
    """Replace the texts that the redactor finds, everywhere in the run. UsageError: it is in progress, or damaged."""
    tape = Tape(run)
    found = verify(run)
    refuse_live(tape, found, force=False)
    if not found.ok:
        raise UsageError(f"{run.name} is damaged: `playhead repair {run.name}` first.")
    was_sealed = (run / SEALED_FILE).is_file()
    unseal(run)
    changed = 0
    segments: dict[str, SegmentSummary] = {}
    for segment in Tape(run).segments():
        count, summary = _scrub_segment(run, segment.path, segment.name, redactor)
        changed += count
        segments[segment.name] = summary
    blobs = _drop_blobs(run)
    is_renamed = _scrub_manifest(run, redactor, segments)
    if changed or is_renamed:
        (run / signature.FILE).unlink(missing_ok=True)
    if was_sealed:
        seal(run)
    return Scrubbed(events=changed, blobs=blobs, manifest=is_renamed)


def _scrub_segment(
    run: Path, path: Path, name: str, redactor: Redactor
) -> tuple[int, SegmentSummary]:
    changed = count = size = crc = 0
    fd, part = create_part(path)
    try:
        with open(fd, "wb") as target, file_of(path) as source:
            for line in source:
                body, _ = open_line(line)
                clean = _scrub_body(run, body, redactor)
                changed += clean != body
                raw, crc = close_line(clean, crc)
                target.write(raw)
                count, size = count + 1, size + len(raw)
            target.flush()
            os.fsync(target.fileno())
    except BaseException:
        os.unlink(part)
        raise
    os.replace(part, path)
    return changed, SegmentSummary(name=name, events=count, bytes=size, crc=f"{crc:08x}")


def _scrub_body(run: Path, body: bytes, redactor: Redactor) -> bytes:
    members = json.loads(body + b"}")
    data = members.pop("data", None)
    whole = unspill(run, data) if SPILLED in body else data
    clean = _one_piece(whole, redactor.clean(whole))
    beside = {
        name: redactor.clean_text(value) if name in _BESIDE and isinstance(value, str) else value
        for name, value in members.items()
    }
    if clean == whole and beside == members:
        return body
    encoded = spill(run, clean, _encode)
    return _encode(beside)[:-1] + b',"data":' + encoded


def _one_piece(before: Any, after: Any) -> Any:
    """Merge the pieces of a chunk whose text has another length now: their boundaries are no longer known."""
    if after == before or not isinstance(after, dict) or "sizes" not in after:
        return after
    text, times = after.get("text"), after.get("at_ns")
    if not isinstance(text, str):
        return after
    first = times[:1] if isinstance(times, list) else times
    return {**after, "sizes": [len(text.encode("utf-8", "surrogatepass"))], "at_ns": first}


def _drop_blobs(run: Path) -> int:
    """Delete the blobs that no line names any more; return their number."""
    waiting = set()
    for path in run.glob("tape-*.jsonl"):
        with file_of(path) as lines:
            waiting |= {digest for line in lines for digest in _NAMED.findall(line)}
    needed: set[bytes] = set()
    while waiting:
        digest = waiting.pop()
        if digest not in needed and blob_path(run, digest.decode()).exists():
            needed.add(digest)
            waiting |= set(_NAMED.findall(pull(run, digest.decode())))
    gone = [one for one in run.glob("blobs/*/*") if one.name.encode() not in needed]
    for one in gone:
        one.unlink()
    return len(gone)


def _scrub_manifest(run: Path, redactor: Redactor, segments: dict[str, SegmentSummary]) -> bool:
    manifest = read_manifest(run)
    clean = dataclasses.replace(
        manifest,
        name=redactor.clean_text(manifest.name),
        command=redactor.clean_argv(manifest.command),
        cwd=redactor.clean_text(manifest.cwd),
        project=redactor.clean_text(manifest.project),
        tags=redactor.clean(dict(manifest.tags)),
        error=redactor.clean(manifest.error),
        extra=redactor.clean(dict(manifest.extra)),
    )
    is_changed = clean != manifest
    known = [segments.get(one.name, one) for one in manifest.segments]
    write_manifest(run, dataclasses.replace(clean, segments=known))
    marks = run / MARKS
    if marks.is_file():
        with file_of(marks) as file:
            raw = file.read()
        if (safe := redactor.clean_bytes(raw)) != raw:
            replace_file(marks, safe)
            is_changed = True
    return is_changed


def _encode(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")

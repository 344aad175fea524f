"""Import the session files of other tools as runs of the library. `session_files` reads the files.

A session always has the same run id; importing a file that has grown replaces the earlier run.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playhead import clock, events
from playhead._version import __version__
from playhead.encoding.values import Frozen
from playhead.errors import TapeDamaged
from playhead.events import Status
from playhead.host.project import project_of
from playhead.recording.encoder import DatedEvent, OpenSegment, append
from playhead.redact import Redactor
from playhead.tape import store as stores
from playhead.tape.format import FORMAT_VERSION
from playhead.tape.manifest import Manifest, SegmentSummary, read_manifest, write_manifest
from playhead.tape.shared_writer import SharedSegmentWriter
from playhead.transcripts.session_files import cwd_of, steps_of
from playhead.transcripts.transcript_events import Draft, drafts_of
from playhead.transcripts.transcript_steps import (
    ModelAnswer,
    SessionStarted,
    ToolAnswer,
    TranscriptStep,
    UserPrompt,
    outline,
)

_SEGMENT = "1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """An imported session. `fresh` is False if the run existed already and has not grown."""

    run: Path
    source: Path
    fresh: bool
    prompt: str = ""
    answers: int = 0
    tools: int = 0


def import_session(
    tool: str, source: Path, home: Path, *, redactor: Redactor | None = None
) -> Imported | None:
    """Import one file as a run; None: the file has no conversation."""
    steps = steps_of(tool, source)
    said = [one for one in steps if isinstance(one, ModelAnswer)]
    times = [one.at for one in steps if one.at]
    if not said:
        return None
    state = source.stat()
    started = min(times) if times else state.st_mtime_ns
    began = next(
        (one for one in steps if isinstance(one, SessionStarted)), SessionStarted(tool=tool)
    )
    session = began.session or source.stem
    path = stores.run_path(home, _run_id(tool, session, started))
    tags = {"imported": tool, "session": session, "source_bytes": str(state.st_size)}
    earlier = _earlier(path)
    imported = Imported(
        run=path,
        source=source,
        fresh=earlier is None or earlier.tags.get("source_bytes") != tags["source_bytes"],
        prompt=next((one.text for one in steps if isinstance(one, UserPrompt)), ""),
        answers=len(said),
        tools=outline(steps).tools,
    )
    if not imported.fresh:
        return imported
    cwd = began.cwd or cwd_of(source) or ""
    manifest = Manifest(
        run=path.name,
        name=tool,
        started_at=clock.iso(started),
        started_ns=started,
        redacted=redactor is not None,
        cwd=cwd,
        project=str(project_of(Path(cwd))) if cwd else "",
        tags=tags,
        host=clock.host(),
        playhead=__version__,
        keep=earlier is not None and earlier.keep,
    )
    _write(home, path, manifest, steps, redactor)
    return imported


def _run_id(tool: str, session: str, started: int) -> str:
    """Return a run id that sorts by time and is the same for each import of this session."""
    when = clock.new_run_id(started).rpartition("-")[0]
    # JSON may hold half of a surrogate pair, which is not text.
    named = f"{tool} {session}".encode("utf-8", "surrogatepass")
    return f"{when}-{hashlib.sha256(named).hexdigest()[:6]}"


def _earlier(path: Path) -> Manifest | None:
    try:
        return read_manifest(path)
    except TapeDamaged:
        return None


def _write(
    home: Path,
    path: Path,
    manifest: Manifest,
    steps: list[TranscriptStep],
    redactor: Redactor | None,
) -> None:
    """Write the run in a temporary folder first, so that a half imported run is never visible."""
    part = home / f".import-{path.name}-{clock.pid()}"
    part.mkdir(mode=0o700)
    try:
        last, segment = _write_tape(part, manifest, steps, redactor)
        write_manifest(part, _ended(manifest, steps, last, segment))
        if path.exists():
            shutil.rmtree(path)
        os.rename(part, path)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def _write_tape(
    run: Path, manifest: Manifest, steps: list[TranscriptStep], redactor: Redactor | None
) -> tuple[int, SegmentSummary]:
    """Write all events; return the time of the last one, and the segment's entry of the manifest."""
    writer = SharedSegmentWriter(run, _SEGMENT)
    segment = OpenSegment(run, who=manifest.name, redactor=redactor, may_import=True)
    segment.write_to(writer)
    started = manifest.started_ns
    drafts = drafts_of(steps, base=2, started=started, turns=True)
    last = drafts[-1].wall if drafts else started
    status = _status(steps)
    with writer:
        for entry in _entries(manifest, drafts, status, last):
            append(segment, entry)
    count, size, crc = writer.summary()
    return last, SegmentSummary(name=_SEGMENT, events=count, bytes=size, crc=f"{crc:08x}")


def _entries(
    manifest: Manifest, drafts: list[Draft], status: Status, last: int
) -> Iterator[DatedEvent]:
    started = manifest.started_ns
    first = {"format": FORMAT_VERSION, "run": manifest.run, "generation": 0, "level": "full"}
    first |= {"redacted": manifest.redacted, "pid": 0, "host": manifest.host, "argv": []}
    yield DatedEvent(events.SEGMENT_START, first, wall=started, mono=1)
    facts = {"run": manifest.run, "name": manifest.name, "tags": manifest.tags, "command": []}
    facts |= {"cwd": manifest.cwd, "project": manifest.project, "level": "full"}
    yield DatedEvent(events.RUN_START, facts, wall=started, mono=1)
    for draft in drafts:
        yield DatedEvent(
            draft.kind,
            _settled(draft.data),
            wall=draft.wall,
            mono=draft.wall - started + 1,
            parent=0 if draft.parent is None else draft.parent + 2,
            cause=None if draft.cause is None else draft.cause + 2,
            lane=draft.lane,
        )
    ended = {"status": status, "took_ns": last - started, "error": None}
    yield DatedEvent(events.RUN_END, ended, wall=last, mono=last - started + 1)
    closing = {"events": len(drafts) + 4, "lost": 0}
    yield DatedEvent(events.SEGMENT_END, closing, wall=last, mono=last - started + 1)


def _settled(data: Any) -> Any:
    """Freeze values for the tape. An error is a frozen exception already, and not a value of the user."""
    if isinstance(data, dict) and isinstance(data.get("error"), dict):
        return {**data, "error": Frozen(data["error"])}
    return data


def _ended(
    manifest: Manifest, steps: list[TranscriptStep], last: int, segment: SegmentSummary
) -> Manifest:
    from_start = last - manifest.started_ns
    return dataclasses.replace(
        manifest,
        status=_status(steps),
        ended_at=clock.iso(last),
        duration_s=round(from_start / 1e9, 6),
        events=segment.events,
        segments=[segment],
    )


def _status(steps: Iterable[TranscriptStep]) -> Status:
    """Return the status. A session ends with an answer: if it ends in an error it failed, and if it waits for a tool
    it was abandoned.
    """
    asked: set[str] = set()
    failed = False
    for step in steps:
        if isinstance(step, ModelAnswer):
            asked = {one.id for one in step.asked} | (asked if step.agent else set())
            failed = step.error is not None
        elif isinstance(step, ToolAnswer):
            asked.discard(step.id)
    return "failed" if failed else "interrupted" if asked else "ok"

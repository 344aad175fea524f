"""Seal a finished run: merge its segments into one compressed file, and check it row by row before the
plain files are deleted. Writes files under a `.part` name until they are complete.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from playhead.errors import StoreError, TapeDamaged, UsageError
from playhead.events import Damage
from playhead.host.private_files import create_part, file_of
from playhead.tape.care.verify import Verification, refuse_live, verify
from playhead.tape.format import segment_file
from playhead.tape.reader import Tape
from playhead.tape.reading.merged_rows import plain_rows, sealed_rows
from playhead.tape.reading.segments import Segment
from playhead.tape.sealed.seal_index import FILE, INDEX, Indexer, SealIndex, read_index, write_index
from playhead.tape.sealed.sealed_reader import frames_of
from playhead.tape.sealed.zstd import FRAME, codec


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """The result of sealing a run."""

    path: Path
    segments: int
    events: int
    # Of the lines, and of the sealed file.
    bytes: int
    compressed: int
    sha256: str


def seal(run: Path, *, force: bool = False) -> Sealed:
    """Seal a run that has ended. Does nothing if it is sealed already.

    UsageError: the run is still in progress (`force`: assume that a run of another host has ended). TapeDamaged: it has
    to be repaired first.
    """
    run = Path(run)
    tape = Tape(run)
    segments = tape.segments()
    index = read_index(run) if (run / FILE).is_file() else None
    if isinstance(index, SealIndex) and all(segment.sealed for segment in segments):
        return _sealed(run, index)
    if not segments:
        raise UsageError(f"{run} has no events: there is nothing to seal.")
    _refuse(run, force=force)
    _remove_parts(run)
    part = run / FILE
    try:
        fd, name = create_part(run / FILE)
        part = Path(name)
        _write(fd, tape)
        index = _prove(part, segments)
    except (TapeDamaged, OSError) as error:
        if part != run / FILE:
            part.unlink(missing_ok=True)
        if isinstance(error, TapeDamaged):
            raise
        why = f"{run} cannot be sealed ({error.strerror or error}); its segments are untouched."
        raise StoreError(why) from error
    os.replace(part, run / FILE)
    write_index(run, index)
    _sync_folder(run)
    for segment in segments:
        if not segment.sealed:
            segment.path.unlink()
    return _sealed(run, index)


def unseal(run: Path, *, force: bool = False) -> list[Path]:
    """Restore the plain segments, byte for byte. Does nothing if nothing is sealed."""
    run = Path(run)
    if not (run / FILE).is_file():
        return []
    _refuse(run, force=force)
    _remove_parts(run)
    segments = [segment for segment in Tape(run).segments() if segment.sealed]
    parts = {segment.name: new_part(run / segment_file(segment.name)) for segment in segments}
    indexer = Indexer()
    for frame, compressed, raw in frames_of(run / FILE, _raise):
        waiting: dict[str, list[bytes]] = {}
        for event, line in indexer.add(frame, compressed, raw):
            if event is not None and event.segment in parts:
                waiting.setdefault(event.segment, []).append(line + b"\n")
        for name, lines in waiting.items():
            append(parts[name], b"".join(lines))
    made = [finish(part) for part in parts.values()]
    _sync_folder(run)
    (run / INDEX).unlink(missing_ok=True)
    (run / FILE).unlink()
    return made


def _refuse(run: Path, *, force: bool) -> None:
    """Refuse to seal or unseal a run that is still written to, or that is damaged."""
    tape = Tape(run)
    found = verify(run)
    refuse_live(tape, found, force=force)
    wrong = [one for one in found.damages if _concerns(one, found)]
    if wrong:
        name = tape.manifest.run
        raise TapeDamaged(
            f"Run {name} is damaged: {wrong[0]}. `playhead repair {name}` first.", wrong
        )


def _concerns(damage: Damage, found: Verification) -> bool:
    """Return whether a damage concerns the lines themselves: not the manifest, not a blob, and not files that an
    interrupted sealing left beside complete segments.
    """
    if damage.segment in (FILE, INDEX):
        return any(segment.sealed for segment in found.segments)
    return any(segment.damaged for segment in found.segments if segment.name == damage.segment)


def _write(fd: int, tape: Tape) -> None:
    compress = codec().compress
    held: list[bytes] = []
    size = 0
    with open(fd, "wb") as file:
        for line in tape.lines():
            held.append(line.raw)
            size += len(line.raw) + 1
            if size >= FRAME:
                file.write(compress(b"\n".join([*held, b""])))
                held, size = [], 0
        if held:
            file.write(compress(b"\n".join([*held, b""])))
        file.flush()
        os.fsync(fd)


def _prove(part: Path, segments: list[Segment]) -> SealIndex:
    """Read the sealed file back and compare each row with the one in its segment."""
    plain = {
        segment.name: plain_rows(segment, _raise) for segment in segments if not segment.sealed
    }
    older = [segment for segment in segments if segment.sealed]
    before = sealed_rows(older, frozenset(plain), _raise) if older else iter(())
    indexer = Indexer()
    row = 0
    for frame, compressed, raw in frames_of(part, _raise):
        for event, line in indexer.add(frame, compressed, raw):
            row += 1
            source = before if event is None else plain.get(event.segment, before)
            if next(source, (None, 0, None))[2] != line:
                raise TapeDamaged(
                    f"Row {row} of {part} differs from its segment. The segments are untouched."
                )
    if any(next(source, None) is not None for source in (*plain.values(), before)):
        raise TapeDamaged(f"{part} ends before the segments do. The segments are untouched.")
    return indexer.index()


def _remove_parts(run: Path) -> None:
    """Remove temporary files that an interrupted sealing or unsealing left."""
    for part in run.glob("tape*.part"):
        if part.is_symlink() or part.is_file():
            part.unlink()


def _sync_folder(run: Path) -> None:
    """Flush the folder: the new names must be on the disk before the old files are deleted."""
    fd = os.open(run, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _sealed(run: Path, index: SealIndex) -> Sealed:
    return Sealed(
        path=run / FILE,
        segments=len(index.segments),
        events=index.events,
        bytes=index.bytes,
        compressed=index.compressed,
        sha256=index.sha256,
    )


def _raise(damage: Damage) -> None:
    raise TapeDamaged(f"The tape is damaged: {damage}.", [damage])


def new_part(target: Path) -> Path:
    """Create an empty temporary file beside `target`, for `append` and `finish`."""
    fd, part = create_part(target)
    os.close(fd)
    return Path(part)


def append(part: Path, content: bytes) -> None:
    """Append to a file. It is opened each time: a run may have more segments than a process may have open files."""
    fd = os.open(part, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(fd, "ab") as file:
        file.write(content)


def finish(part: Path) -> Path:
    """Rename `NAME.RANDOM.part` to `NAME`, once its content is on the disk."""
    with file_of(part) as file:
        os.fsync(file.fileno())
    whole = part.with_suffix("").with_suffix("")
    os.replace(part, whole)
    return whole

"""Find the run that a recording resumes. Knows manifests and segments; does not know the recorder."""

from __future__ import annotations

from pathlib import Path

from playhead.errors import TapeDamaged, TapeTooNew
from playhead.host.private_files import file_of
from playhead.tape import store
from playhead.tape.format import NotAnEvent, decoder, segment_name
from playhead.tape.layout import sealed_segments
from playhead.tape.manifest import read_manifest


def find_resumable(
    home: Path, *, run_id: str | None, name: str | None, resume: bool | str, force: bool
) -> Path | None:
    """Return the earlier run that `resume` or `force` refers to: by id, else the newest of that name."""
    if not resume and not force:
        return None
    wanted = resume if isinstance(resume, str) else run_id
    if wanted is not None:
        path = store.run_path(home, wanted)
        return path if path.exists() else None
    if not name:
        return None
    for path in store.runs(home):
        try:
            if read_manifest(path).name == name:
                return path
        except (TapeDamaged, TapeTooNew):
            continue  # cannot be resumed; `playhead verify` reports the damage
    return None


def next_seq_of(run: Path) -> int:
    """Return one more than the highest seq on the tape, so that the sequence continues."""
    decode = decoder()
    highest = max(sealed_segments(run).values(), default=-1)
    for path in run.iterdir():
        if segment_name(path.name) is None:
            continue
        for line in reversed(_last_lines(path)):
            try:
                highest = max(highest, decode(line).seq)
            except NotAnEvent:
                continue  # the torn tail of a killed process: the complete line before it counts
            break
    return highest + 1


def _last_lines(path: Path) -> list[bytes]:
    with file_of(path) as segment:
        size = segment.seek(0, 2)
        segment.seek(max(0, size - 256 * 1024))
        return segment.read().splitlines()

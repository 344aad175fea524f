"""Is a run still being written? Knows processes of this host, and what those of others said."""

from __future__ import annotations

from playhead import clock
from playhead.errors import UsageError
from playhead.tape.care.verify import Verification
from playhead.tape.manifest import status_of
from playhead.tape.reader import Tape
from playhead.tape.seek import roots
from playhead.tape.segments import is_alive


def refuse_live(tape: Tape, found: Verification, *, force: bool) -> None:
    """UsageError if somebody writes, or may write, to this tape. `force`: the person knows that a
    run of another host, which cannot be asked, is over.
    """
    name = tape.manifest.run
    ended = {check.name for check in found.segments if check.ended}
    segments = tape.segments()
    for segment in segments:
        if segment.name not in ended and is_alive(segment):
            raise UsageError(
                f"Process {segment.pid} of run {name} is still writing. Wait for its end."
            )
    if status_of(tape.manifest) != "running":
        return
    if tape.manifest.host == clock.host():
        raise UsageError(f"Run {name} is still going on. Wait for its end.")
    own = roots(segments)
    if force or not own or own[-1].name in ended:
        return
    raise UsageError(
        f"Run {name} was recorded on {tape.manifest.host or 'another host'}, which cannot be asked "
        "whether it is over. If it is, say so with --force."
    )

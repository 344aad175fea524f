"""Decide who records the command's stdin, and build the stdin of a replay from the tape.

Knows descriptors and the kinds of stdin; does not know runs or hooks. A Python command keeps its stdin, and its
hooks record each read (`hooks/input`). Any other command gets a pipe in place of a piped stdin, which the sidecar
records; a file is recorded at the start. docs/design/024-wires.md gives the reasons.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from playhead import events
from playhead.events import Event
from playhead.launch.sidecar.command_streams import HIGH, STDIN, Stream, moved_up
from playhead.recording.chunks import as_bytes, as_text
from playhead.recording.encoder import NewEvent
from playhead.recording.recorder import Recorder
from playhead.tape.reader import Tape

# Kinds of stdin.
CLOSED, NULL, FILE, PIPE, TERMINAL = "closed", "null", "file", "pipe", "terminal"
# Which part records it: hooks in the program's own processes, or the launcher.
BY_PROGRAM, BY_LAUNCHER = "program", "launcher"

# A larger file is not recorded, and the run says so.
_LARGEST_FILE = 256 * 1024 * 1024
_AT_ONCE = 1024 * 1024
# End-of-file characters for programs that read a replay's terminal without any hook: each read consumes one.
_ENDS = b"\x04" * 64


class TapedInput(NamedTuple):
    """The stdin of a recorded run: its kind, which part recorded it, and the content that the launcher recorded."""

    kind: str
    by: str
    content: bytes


class InputPlan(NamedTuple):
    """How the command gets its stdin."""

    kind: str
    by: str
    # The pipe in front of stdin, which the sidecar fills.
    stream: Stream | None = None
    # The open file that becomes the command's stdin; None: it keeps ours.
    entry: int | None = None
    # Stays open as long as the command runs.
    held: int | None = None
    # Why the stdin is not recorded.
    missing: str | None = None

    @property
    def facts(self) -> dict[str, str]:
        """Return the facts for the tape."""
        return {"stdin": self.kind, "by": self.by}

    @property
    def identity(self) -> str | None:
        """Return how a process recognises the run's stdin as its own. None: hooks leave stdin alone."""
        if self.by != BY_PROGRAM or self.kind in (CLOSED, NULL):
            return None
        found = os.fstat(0 if self.entry is None else self.entry)
        return f"{self.kind}:{found.st_dev}:{found.st_ino}"


def plan(taped: TapedInput | None, *, is_python: bool) -> InputPlan:
    """Plan the stdin of a replay, or (if `taped` is None) of a recording."""
    return _recording(is_python=is_python) if taped is None else _replay(taped)


def _recording(*, is_python: bool) -> InputPlan:
    """Plan the stdin of a recording from our own stdin, which the command inherits."""
    kind = _kind_of(0)
    if is_python or kind not in (PIPE, FILE):
        return InputPlan(kind, BY_PROGRAM)
    if kind == FILE:
        size = os.fstat(0).st_size
        missing = f"stdin is a file of {size:,} bytes" if size > _LARGEST_FILE else None
        return InputPlan(kind, BY_LAUNCHER, missing=missing)
    return InputPlan(
        kind, BY_LAUNCHER, stream=_relayed(fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, HIGH))
    )


def _replay(taped: TapedInput) -> InputPlan:
    """Return a stdin of the recorded kind with the recorded content; our own stdin does not matter."""
    if taped.kind == PIPE and taped.by == BY_LAUNCHER:
        return InputPlan(PIPE, BY_LAUNCHER, stream=_relayed(_filled(taped.content)))
    if taped.kind == PIPE:
        reader, writer = os.pipe()
        os.close(writer)  # always readable; the hooks decide what is read
        return InputPlan(PIPE, BY_PROGRAM, entry=moved_up(reader))
    if taped.kind == FILE:
        return InputPlan(FILE, taped.by, entry=_filled(taped.content))
    if taped.kind == TERMINAL:
        master, slave = os.openpty()
        os.write(master, _ENDS)
        return InputPlan(TERMINAL, BY_PROGRAM, entry=moved_up(slave), held=moved_up(master))
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    return InputPlan(NULL, taped.by, entry=moved_up(null))


def record_file(recorder: Recorder, plan: InputPlan) -> None:
    """Record the file that is the command's stdin, from the position at which the command will start to read."""
    if plan.kind != FILE or plan.by != BY_LAUNCHER or plan.entry is not None:
        return
    if plan.missing is not None:
        hole = {"boundary": "input", "what": "stdin", "why": plan.missing}
        recorder.append(NewEvent(events.HOLE, hole))
        return
    at = os.lseek(0, 0, os.SEEK_CUR)
    while piece := os.pread(0, _AT_ONCE, at):
        at += len(piece)
        data = {"stream": STDIN, "bytes": len(piece), **as_text(piece)}
        recorder.append(NewEvent(events.INPUT, data))


def taped_input(tape: Tape, then: Mapping[str, Any]) -> TapedInput | None:
    """Return the stdin of a recorded run. None: the tape has no facts about it."""
    facts = then.get("input")
    if not isinstance(facts, dict):
        return None
    by = str(facts.get("by"))
    content = b"".join(_pieces(tape)) if by == BY_LAUNCHER else b""
    return TapedInput(kind=str(facts.get("stdin")), by=by, content=content)


def _pieces(tape: Tape) -> Iterable[bytes]:
    for event in tape.events():
        if event.kind == events.INPUT and event.ours:
            whole: Event = tape.whole(event)
            if isinstance(whole.data, dict):
                yield as_bytes(whole.data)


def _kind_of(fd: int) -> str:
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return CLOSED
    if os.isatty(fd):
        return TERMINAL
    if stat.S_ISREG(mode):
        return FILE
    return PIPE if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else NULL


def _relayed(source: int) -> Stream:
    reader, writer = (moved_up(end) for end in os.pipe())
    return Stream(name=STDIN, fds=(0,), source=source, entry=reader, sink=writer)


def _filled(content: bytes) -> int:
    """Return a file in memory with this content, positioned at its start."""
    fd = moved_up(os.memfd_create("stdin", os.MFD_CLOEXEC))
    left = memoryview(content)
    while left:
        left = left[os.write(fd, left) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd

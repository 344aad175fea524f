"""Start the tracer of a command, check whether this machine supports it, and read which programs it could not
follow. Knows one program and two pipes; `shims/native/follow.c` does the tracing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from playhead.host.cache_folder import cache_folder
from playhead.launch.shims.programs import SHIM, compiler_on, static_program
from playhead.replay.fence.barrier import Fence

_FOLLOW = "playhead-follow"


class Tracer:
    """A running tracer. It ends with the last process of the tree."""

    def __init__(self, pid: int, report: int) -> None:
        self.pid = pid
        self._report = report

    def unfollowed(self) -> list[tuple[str, str]]:
        """Return the programs that the tracer has released so far, with the reasons."""
        os.set_blocking(self._report, False)
        pieces = []
        try:
            while piece := os.read(self._report, 1 << 16):
                pieces.append(piece)
        except BlockingIOError:
            pass  # everything that it has reported so far is read; it may still be running
        os.close(self._report)
        lines = b"".join(pieces).decode(errors="replace").splitlines()
        found = {(line.partition("\t")[0], line.partition("\t")[2]) for line in lines}
        if self._was_killed():
            found.add(("programs that the command started", "their tracer was killed"))
        return sorted(found)

    def _was_killed(self) -> bool:
        with suppress(ChildProcessError):
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            return pid != 0 and os.WIFSIGNALED(status)
        return False


def start(shims: Path, waiting: Fence | None) -> Tracer:
    """Trace the process that waits to become the command. OSError gives the reason if that is impossible."""
    if waiting is None:
        raise OSError("no process waits to become the command")
    waiting.be_traceable()
    started, ready = os.pipe()
    report, reports = os.pipe()
    os.set_inheritable(ready, True)
    os.set_inheritable(reports, True)
    try:
        # A grandchild would not need to be waited for, but Yama lets only ancestors and named processes trace.
        pid = os.posix_spawn(
            str(shims / SHIM), [_FOLLOW, str(waiting.pid), str(ready), str(reports)], {}
        )
    except OSError:
        for one in (started, report):
            os.close(one)
        raise
    finally:
        os.close(ready)
        os.close(reports)
    try:
        answer = os.read(started, 256)
    finally:
        os.close(started)
    if answer != b"+":
        os.waitpid(pid, 0)
        os.close(report)
        raise OSError(f"the command cannot be traced: {answer.decode() or 'the tracer died'}")
    return Tracer(pid, report)


def why_not(env: Mapping[str, str]) -> str | None:
    """Return why no command can be followed on this machine. None: commands can be followed."""
    if env.get("PLAYHEAD_FOLLOW") == "0":
        return "PLAYHEAD_FOLLOW is 0"
    program = static_program(env)
    if program is None:
        return _why_not_compiled(env)
    pid = os.posix_spawn(str(program), [_FOLLOW, "probe"], {})
    _, status = os.waitpid(pid, 0)
    return None if status == 0 else "this system does not permit tracing (ptrace)"


def _why_not_compiled(env: Mapping[str, str]) -> str:
    if env.get("PLAYHEAD_SHIMS_NATIVE") == "0":
        return "PLAYHEAD_SHIMS_NATIVE is 0"
    if compiler_on(env) is None:
        return "no C compiler, which builds the tracer"
    return f"the tracer cannot be compiled into {cache_folder(env)}, or cannot run from there"

"""The launcher's side of the shims: their folder, the command's environment, and the clerk.

Knows forking, PATH and SHELL; not what is said. Fails open: where shims cannot be had, the command runs
without, and the tape has a hole that says so. A replay that needs them does not run without.
"""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from playhead import events
from playhead.encoding.values import safe_str
from playhead.errors import StoreError
from playhead.host import descriptors
from playhead.host.later import Later
from playhead.launch.guest import search_path as paths
from playhead.launch.shims import folders
from playhead.launch.shims.cover import Cover
from playhead.launch.shims.launcher import Launcher
from playhead.launch.shims.program_names import Wanted
from playhead.launch.shims.programs import Stand, native_program, write_shims
from playhead.launch.shims.shim_frames import DRAIN, WATCH
from playhead.launch.shims.shim_request import Surroundings
from playhead.launch.shims.telling import Telling
from playhead.recording.recorder import Recorder
from playhead.tape.store import PLAN

if TYPE_CHECKING:
    from playhead.launch.shims import clerk, covering
else:
    clerk = Later("playhead.launch.shims.clerk")  # loaded by the process that is one
    covering = Later("playhead.launch.shims.covering")

_BACKLOG = 1024
_LONGEST_GOODBYE_S = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """The shims of a run, and who takes their calls. Without any, everything is as it was."""

    env: Mapping[str, str]
    folder: Path | None = None
    pid: int = 0
    ask: int = -1
    hear: int = -1
    # What goes before the command's words.
    prefix: tuple[str, ...] = ()
    # For those who hear what models ask for.
    tell: Telling | None = None
    segments: frozenset[str] = field(default_factory=frozenset)

    def watch(self, pid: int) -> None:
        """The command runs: should we be killed, its shims are heard until it has ended."""
        if self.folder is not None:
            with suppress(OSError):  # killed
                os.write(self.ask, WATCH + pid.to_bytes(4, "big"))

    def dismiss(self) -> None:
        """Returns when all that shims have told is on the tape."""
        if self.folder is None:
            return
        with suppress(OSError):  # killed: nothing more to hear from it
            os.write(self.ask, DRAIN)
            if select.select([self.hear], [], [], _LONGEST_GOODBYE_S)[0]:
                os.read(self.hear, 1)
        os.close(self.ask)
        os.close(self.hear)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        folders.remove(self.folder)


def post(
    recorder: Recorder,
    wanted: Wanted,
    env: Mapping[str, str],
    *,
    launcher: int | None = None,
) -> Posted:
    """Make the shims and fork their clerk. Signals are blocked already, and stay so in it.

    `launcher` starts the command, which is nobody's subprocess; by default it is this process.
    """
    if not wanted.names:
        return Posted(env=env)
    launcher = os.getpid() if launcher is None else launcher
    try:
        return _posted(recorder, wanted, env, launcher)
    except OSError as error:
        if (recorder.run / PLAN).exists():
            raise StoreError(f"No shims can be made for this replay: {safe_str(error)}") from error
        why = f"no shims: {safe_str(error)}"
        recorder.add(events.HOLE, {"boundary": "process", "what": "shims", "why": why}, '""')
        recorder.warn(f"subprocesses are not recorded ({why}).")
        return Posted(env=env)


def _posted(recorder: Recorder, wanted: Wanted, env: Mapping[str, str], launcher: int) -> Posted:
    folder = folders.make(env)
    shims = folder / "bin"
    shims.mkdir(mode=0o700)
    program = native_program(env)
    cover = _covered(recorder, wanted, env, folder, program)
    stands = [
        Stand(
            mode="replay" if (recorder.run / PLAN).exists() else "record",
            name=name,
            folder=str(shims),
            socket=str(folder / folders.DOOR),
            path=env.get("PATH", os.defpath),
            real=cover.moved.get(name, ""),
            launcher=str(launcher),
        )
        for name in wanted.names
    ]
    write_shims(shims, stands, program)
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    door.bind(str(folder / folders.DOOR))
    door.listen(_BACKLOG)
    then = Surroundings(folder=str(shims), cwd=os.getcwd(), env=dict(env))
    ask, hear = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            descriptors.keep_only(door.fileno(), ask[0], hear[1])
            line = Launcher(asked=ask[0], answer=hear[1])
            if line.wait(door.fileno()):
                clerk.Clerk(recorder, door, then, line, folder).attend()
        finally:
            os._exit(0)
    door.close()
    os.close(ask[0])
    os.close(hear[1])
    made = with_shims(env, str(shims), wanted)
    segments = frozenset({str(pid)})
    return Posted(
        env=made,
        folder=folder,
        pid=pid,
        ask=ask[1],
        hear=hear[0],
        prefix=cover.prefix,
        tell=Telling(str(folder / folders.DOOR)),
        segments=segments,
    )


def _covered(
    recorder: Recorder, wanted: Wanted, env: Mapping[str, str], folder: Path, program: Path | None
) -> Cover:
    """The shims over the real paths, where they were asked for and can be had."""
    if not wanted.mounted:
        return Cover()
    try:
        return covering.cover(wanted.names, env, folder, program)
    except OSError as error:
        if (recorder.run / PLAN).exists():
            raise
        why = f"no shims over the real paths: {safe_str(error)}"
        recorder.add(events.HOLE, {"boundary": "process", "what": "shims", "why": why}, '""')
        recorder.warn(f"what is started by its full path is not recorded ({why}).")
        return Cover()


def with_shims(env: Mapping[str, str], shims: str, wanted: Wanted) -> dict[str, str]:
    """The environment in which the shims are found first."""
    shell = env.get("SHELL", "")
    has_shim = wanted.shell and os.path.basename(shell) in wanted.names
    told = f"{shims}{os.pathsep}{shell}" if has_shim else shims
    given = {"PATH": os.defpath, **env}
    return {**given, **paths.put_first(given, told)}

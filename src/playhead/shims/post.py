"""The launcher's side of the shims: their folder, the command's environment, and the clerk.

Knows forking, PATH and SHELL; not what is said. Fails open: where shims cannot be had, the command runs
without, and the tape has a hole that says so. A replay that needs them does not run without.
"""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from playhead import clock, events
from playhead.errors import StoreError
from playhead.later import Later
from playhead.recorder import Recorder
from playhead.shims import paths
from playhead.shims.asked import Surroundings
from playhead.shims.names import where_is
from playhead.shims.programs import Stand, native_program, write_shims
from playhead.tape.store import PLAN
from playhead.values import safe_str

if TYPE_CHECKING:
    from playhead.shims import clerk
else:
    clerk = Later("playhead.shims.clerk")  # loaded by the process that is one

_BACKLOG = 1024
_LONGEST_GOODBYE_S = 20
# What the address of a socket has room for.
_LONGEST_ADDRESS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """The shims of a run, and who takes their calls. Without any, everything is as it was."""

    env: Mapping[str, str]
    folder: Path | None = None
    pid: int = 0
    ask: int = -1
    hear: int = -1
    segments: frozenset[str] = field(default_factory=frozenset)

    def dismiss(self) -> None:
        """Returns when all that shims have told is on the tape."""
        if self.folder is None:
            return
        with suppress(OSError):  # killed: nothing more to hear from it
            os.write(self.ask, clerk.DRAIN)
            if select.select([self.hear], [], [], _LONGEST_GOODBYE_S)[0]:
                os.read(self.hear, 1)
        os.close(self.ask)
        os.close(self.hear)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        _remove(self.folder)


def post(
    recorder: Recorder,
    names: Sequence[str],
    env: Mapping[str, str],
    *,
    launcher: int | None = None,
) -> Posted:
    """Make the shims and fork their clerk. Signals are blocked already, and stay so in it.

    `launcher` starts the command, which is nobody's subprocess; by default it is this process.
    """
    if not names:
        return Posted(env=env)
    try:
        return _posted(recorder, names, env, os.getpid() if launcher is None else launcher)
    except OSError as error:
        if (recorder.run / PLAN).exists():
            raise StoreError(f"No shims can be made for this replay: {safe_str(error)}") from error
        why = f"no shims: {safe_str(error)}"
        recorder.add(events.HOLE, {"boundary": "process", "what": "shims", "why": why}, '""')
        recorder.warn(f"subprocesses are not recorded ({why}).")
        return Posted(env=env)


def _posted(
    recorder: Recorder, names: Sequence[str], env: Mapping[str, str], launcher: int
) -> Posted:
    folder = _folder(env)
    shims = folder / "bin"
    shims.mkdir(mode=0o700)
    stands = [
        Stand(
            mode="replay" if (recorder.run / PLAN).exists() else "record",
            name=name,
            folder=str(shims),
            socket=str(folder / "clerk"),
            path=env.get("PATH", os.defpath),
            launcher=str(launcher),
        )
        for name in names
    ]
    write_shims(shims, stands, native_program(env))
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    door.bind(str(folder / "clerk"))
    door.listen(_BACKLOG)
    then = Surroundings(folder=str(shims), cwd=os.getcwd(), env=dict(env))
    ask, hear = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _let_go_of_all_but(door.fileno(), ask[0], hear[1])
            clerk.Clerk(recorder, door, then, asked=ask[0], answer=hear[1]).attend()
        finally:
            os._exit(0)
    door.close()
    os.close(ask[0])
    os.close(hear[1])
    made = with_shims(env, str(shims), names)
    segments = frozenset({str(pid)})
    return Posted(env=made, folder=folder, pid=pid, ask=ask[1], hear=hear[0], segments=segments)


def with_shims(env: Mapping[str, str], shims: str, names: Sequence[str]) -> dict[str, str]:
    """The environment in which the shims are found first."""
    shell = env.get("SHELL", "")
    has_shim = os.path.basename(shell) in names and where_is(shell, env) is not None
    told = f"{shims}{os.pathsep}{shell}" if has_shim else shims
    given = {"PATH": os.defpath, **env}
    return {**given, **paths.put_first(given, told)}


def _folder(env: Mapping[str, str]) -> Path:
    """For this run and this user alone, and with a short name: a socket's address is short."""
    name = f"playhead-{clock.urandom(6).hex()}"
    for parent in (env.get("TMPDIR"), "/tmp"):  # noqa: S108  0700, random
        if parent and len(parent) + len(name) < _LONGEST_ADDRESS:
            folder = Path(parent) / name
            try:
                folder.mkdir(mode=0o700)
            except OSError:
                continue
            return folder
    raise OSError("there is no folder for them to be in")


def _let_go_of_all_but(*kept: int) -> None:
    """Whoever waits for the end of a pipe must not wait for us."""
    for name in os.listdir("/dev/fd"):
        if int(name) not in kept:
            with suppress(OSError):  # the one by which the folder was read
                os.close(int(name))
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)


def _remove(folder: Path) -> None:
    with suppress(OSError):
        for inner in sorted(folder.rglob("*"), reverse=True):
            inner.rmdir() if inner.is_dir() else inner.unlink()
        folder.rmdir()

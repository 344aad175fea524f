"""The launcher's side of the shims: their folder, the socket that they connect to, the command's environment.

Knows PATH, SHELL and files, and which folders are suitable; the sidecar serves the socket. Fails open: where shims
cannot be made, the command runs without them, and the tape has a hole with the reason. A replay that needs them
does not run without them.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from playhead import clock, events
from playhead.encoding.values import safe_str
from playhead.errors import StoreError
from playhead.host.later import Later
from playhead.launch.guest.variables import put_first
from playhead.launch.shims.program_names import Wanted, where_is
from playhead.recording.encoder import NewEvent
from playhead.recording.recorder import Recorder
from playhead.tape.store import PLAN

if TYPE_CHECKING:
    from playhead.launch.follow.followed_tree import FollowedTree
    from playhead.launch.shims import covering, programs, shim_request
    from playhead.launch.shims.programs import ShimSettings
    from playhead.launch.shims.shim_request import Surroundings
else:
    covering = Later("playhead.launch.shims.covering")
    programs = Later("playhead.launch.shims.programs")
    shim_request = Later("playhead.launch.shims.shim_request")


# The maximum length of a socket's address.
_LONGEST_ADDRESS = 100
_PREFIX = "playhead-shims-"
# The name of the socket on which the sidecar listens.
DOOR = "clerk"
_DAY_S = 24 * 3600


def make_folder(env: Mapping[str, str]) -> Path:
    """Make a folder for this run and this user only. Its name is short, because the address of a socket must be
    short.
    """
    name = f"{_PREFIX}{clock.urandom(6).hex()}"
    for parent in (env.get("TMPDIR"), "/tmp"):  # noqa: S108  0700, random
        if parent and len(parent) + len(name) < _LONGEST_ADDRESS:
            folder = Path(parent) / name
            try:
                folder.mkdir(mode=0o700)
            except OSError:
                continue
            _clear(folder.parent)
            return folder
    raise OSError("there is no suitable folder for them")


def remove_folder(folder: Path) -> None:
    with suppress(OSError):
        for inner in sorted(folder.rglob("*"), reverse=True):
            inner.rmdir() if inner.is_dir() else inner.unlink()
        folder.rmdir()


def _clear(parent: Path) -> None:
    """Delete the folders of runs that were killed together with all their processes."""
    yesterday = clock.wall_ns() / 1e9 - _DAY_S
    for folder in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            stat = folder.stat()
            if stat.st_uid == os.getuid() and stat.st_mtime < yesterday and not _is_open(folder):
                remove_folder(folder)


def _is_open(folder: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        return line.connect_ex(str(folder / DOOR)) == 0


_BACKLOG = 1024


class Shims(NamedTuple):
    """The shims of a run. If there are none, `env` is the given one, and nothing else is set."""

    env: Mapping[str, str]
    folder: Path | None = None
    # The socket that they connect to.
    door: socket.socket | None = None
    # The command's own environment and folder, to which each call is compared.
    surroundings: Surroundings | None = None
    # Words to put before the command.
    prefix: tuple[str, ...] = ()
    # With a tracer, which puts the shim in the place of every program: the tree, which knows what is part of the agent.
    tree: FollowedTree | None = None

    def close(self) -> None:
        """Close this process's copy of the socket."""
        if self.door is not None:
            self.door.close()

    def remove(self) -> None:
        """Remove their folder, when the run has ended."""
        if self.folder is not None:
            remove_folder(self.folder)


def make_shims(
    recorder: Recorder,
    wanted: Wanted,
    env: Mapping[str, str],
    *,
    launcher: int | None = None,
    tree: FollowedTree | None = None,
    cwd: str | None = None,
) -> Shims:
    """Write the shims of a run.

    `launcher` is the pid that starts the command, which is not a subprocess of the run; by default this process.
    `tree`: the command is followed. `cwd` is the command's folder, which may exist only inside the fence; by default
    ours.
    """
    if wanted.unfollowed is not None:
        why = f"only programs with a shim are recorded: {wanted.unfollowed}"
        recorder.append(
            NewEvent(events.HOLE, {"boundary": "process", "what": "follow", "why": why})
        )
    if not wanted.names and tree is None:
        return Shims(env=env)
    launcher = os.getpid() if launcher is None else launcher
    try:
        if tree is not None:
            made = _followed(recorder, wanted, env, launcher, tree)
        else:
            made = _made(recorder, wanted, env, launcher)
        if cwd is None or made.surroundings is None:
            return made
        return made._replace(surroundings=made.surroundings._replace(cwd=cwd))
    except OSError as error:
        if (recorder.run / PLAN).exists():
            raise StoreError(f"No shims can be made for this replay: {safe_str(error)}") from error
        why = f"no shims: {safe_str(error)}"
        recorder.append(NewEvent(events.HOLE, {"boundary": "process", "what": "shims", "why": why}))
        recorder.warn(f"subprocesses are not recorded ({why}).")
        return Shims(env=env)


def _followed(
    recorder: Recorder, wanted: Wanted, env: Mapping[str, str], launcher: int, tree: FollowedTree
) -> Shims:
    """Write one shim, to which the tracer redirects every program. PATH stays as it is, except in a replay on a
    machine that lacks some of the programs: a shell looks for them before it executes anything.
    """
    program = programs.static_program(env)
    if program is None:
        raise OSError("the tracer cannot be compiled here")
    folder = make_folder(env)
    shims = folder / "bin"
    shims.mkdir(mode=0o700)
    programs.write_shims(shims, [_stand(recorder, folder, programs.SHIM, env, launcher)], program)
    if (recorder.run / PLAN).exists():
        missing = [name for name in wanted.names if where_is(name, env) is None]
        for name in missing:
            os.link(shims / programs.SHIM, shims / name)
        if missing:
            env = {**env, "PATH": f"{env.get('PATH', os.defpath)}{os.pathsep}{shims}"}
    return Shims(
        env=env,
        folder=folder,
        door=_door(folder),
        surroundings=shim_request.Surroundings(folder=str(shims), cwd=os.getcwd(), env=dict(env)),
        tree=tree,
    )


def _stand(
    recorder: Recorder,
    folder: Path,
    name: str,
    env: Mapping[str, str],
    launcher: int,
    *,
    real: str = "",
) -> ShimSettings:
    return programs.ShimSettings(
        mode="replay" if (recorder.run / PLAN).exists() else "record",
        name=name,
        folder=str(folder / "bin"),
        socket=str(folder / DOOR),
        path=env.get("PATH", os.defpath),
        real=real,
        launcher=str(launcher),
    )


def _door(folder: Path) -> socket.socket:
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    door.bind(str(folder / DOOR))
    door.listen(_BACKLOG)
    return door


def _made(recorder: Recorder, wanted: Wanted, env: Mapping[str, str], launcher: int) -> Shims:
    folder = make_folder(env)
    shims = folder / "bin"
    shims.mkdir(mode=0o700)
    program = programs.native_program(env)
    cover = _covered(recorder, wanted, env, folder, program)
    stands = [
        _stand(recorder, folder, name, env, launcher, real=cover.moved.get(name, ""))
        for name in wanted.names
    ]
    programs.write_shims(shims, stands, program)
    return Shims(
        env=with_shims(env, str(shims), wanted),
        folder=folder,
        door=_door(folder),
        surroundings=shim_request.Surroundings(folder=str(shims), cwd=os.getcwd(), env=dict(env)),
        prefix=cover.prefix,
    )


def _covered(
    recorder: Recorder, wanted: Wanted, env: Mapping[str, str], folder: Path, program: Path | None
) -> Cover:
    """Cover the real paths with shims, if the user requested it and the machine allows it."""
    if not wanted.mounted:
        return Cover(moved={})
    try:
        return covering.cover(wanted.names, env, folder, program)
    except OSError as error:
        if (recorder.run / PLAN).exists():
            raise
        why = f"no shims over the real paths: {safe_str(error)}"
        recorder.append(NewEvent(events.HOLE, {"boundary": "process", "what": "shims", "why": why}))
        recorder.warn(f"programs that are started by their full path are not recorded ({why}).")
        return Cover(moved={})


def with_shims(env: Mapping[str, str], shims: str, wanted: Wanted) -> dict[str, str]:
    """The environment in which the shims are found first."""
    shell = env.get("SHELL", "")
    has_shim = wanted.shell and os.path.basename(shell) in wanted.names
    path = f"{shims}{os.pathsep}{shell}" if has_shim else shims
    given = {"PATH": os.defpath, **env}
    return {**given, **put_first(given, path)}


class Cover(NamedTuple):
    """Covered paths. `moved`: the new paths of the real programs, by name. `prefix`: the words before the command
    that mount the shims. Both are empty if nothing is covered.
    """

    moved: Mapping[str, str]
    prefix: tuple[str, ...] = ()

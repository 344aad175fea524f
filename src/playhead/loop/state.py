"""The state of a session on disk: how far it has come, for `resume`, and its scratch folder.

The state is one small file beside the runs, because a loop that is not recorded can be resumed as well. The
scratch folder holds the status file of an iteration and the session's lock. It is in the machine's folder for
temporary files: an agent in a sandbox may write there and not into a store, and a decision must get through when
the store's disk is full.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from playhead import clock
from playhead.errors import StoreError, UsageError
from playhead.host.cache_folder import exchange_folder
from playhead.loop.stages import Stage
from playhead.tape.store import checked_id, move_aside

_STATUS = "status"
_LOCK = "lock"


def folder_for(session: Path) -> Path:
    """Return the scratch folder. Its name is derived from the session's folder, so all processes of the session find
    it.
    """
    name = hashlib.sha256(os.fsencode(session)).hexdigest()[:16]
    return Path(exchange_folder(os.environ)) / name


def status_file(session: Path) -> Path:
    """Return the path to which an iteration writes its decision."""
    return folder_for(session) / _STATUS


def clear_status(session: Path) -> None:
    """Create an empty status file in a folder that only this user can write to. OSError: it cannot be created."""
    folder = _made(session)
    fd = os.open(folder / _STATUS, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    os.close(fd)


def hold(session: Path) -> int | None:
    """Lock the session for this process until `let_go` or exit. None: this machine cannot lock it. UsageError:
    another process has locked it.
    """
    try:
        fd = os.open(_made(session) / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(fd)
        if error.errno in (errno.EAGAIN, errno.EACCES):
            raise UsageError(f"Session {session.name} is still running.") from None
        return None
    return fd


def let_go(session: Path, held: int | None) -> None:
    """Release the lock of `hold`, and delete the folder."""
    folder = folder_for(session)
    for name in (_STATUS, _LOCK):
        with suppress(OSError):
            os.unlink(folder / name)
    with suppress(OSError):
        os.rmdir(folder)
    if held is not None:
        os.close(held)


def _made(session: Path) -> Path:
    folder = folder_for(session)
    for one in (folder.parent, folder):
        with suppress(FileExistsError):
            os.mkdir(one, 0o700)
        found = os.lstat(one)
        # Any user may have created a folder or a link of that name in a world-writable place.
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise PermissionError(errno.EPERM, "belongs to another user", str(one))
    return folder


_FOLDER = "sessions"
_FILE = "state.json"


class Open(NamedTuple):
    """An iteration that has begun and not ended. `turn` and `call` are its events so far."""

    stage: int
    number: int
    wall_ns: int
    turn: int | str | None = None
    call: int | str | None = None


class State(NamedTuple):
    """The state of a session. `stage` is the current stage; `counts` has the complete iterations of each stage."""

    session: str
    stages: tuple[Stage, ...]
    level: str = "standard"
    run: str | None = None
    # The redaction settings for the steps of a shell script; None: nothing is redacted.
    redact: dict[str, Any] | None = None
    # The segment that the next command of a shell script continues, and the parent of its events.
    segment: str | None = None
    root: str | None = None
    stage: int = 0
    counts: tuple[int, ...] = ()
    # The last decision: after "stop" a stage is over, even if it may have more iterations.
    word: str = "continue"
    status: str = "running"
    open: Open | None = None
    reason: str | None = None
    # Whether the script has ended the session and closed its run.
    closed: bool = False

    @property
    def over(self) -> bool:
        return self.stage >= len(self.stages)

    @property
    def done(self) -> int:
        """Return the complete iterations of the current stage."""
        return self.counts[self.stage] if self.stage < len(self.counts) else 0

    @property
    def total(self) -> int:
        return sum(self.counts)


def folder_of(home: Path, session: str) -> Path:
    return home / _FOLDER / checked_id(session)


def read_state(folder: Path) -> State | None:
    """Read the state. None: there is no such session. StoreError: the state cannot be read."""
    path = folder / _FILE
    try:
        members = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"{path} cannot be read ({error}). Start over with --force.") from None
    try:
        return _from(members)
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"{path} is not the state of a session ({error}). Start over with --force."
        ) from None


def write_state(folder: Path, state: State) -> None:
    """Replace the file atomically; on a full disk write in place, which needs no more room. The caller handles
    OSError.
    """
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    raw = json.dumps(_members(state), ensure_ascii=False).encode("utf-8", "backslashreplace")
    try:
        _replace(folder, raw + b"\n")
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        with (folder / _FILE).open("r+b") as file:
            file.write(raw + b"\n")
            file.truncate()


def _replace(folder: Path, raw: bytes) -> None:
    part = folder / f"{_FILE}.{clock.pid()}.part"
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(raw)
    except OSError:
        os.unlink(part)
        raise
    os.replace(part, folder / _FILE)


def set_aside(folder: Path, at_wall_ns: int) -> None:
    """Move the state aside for `force`: it is kept under another name, never deleted."""
    if folder.exists():
        move_aside(folder, at_wall_ns)


def begun(state: State, opened: Open) -> State:
    return state._replace(open=opened, status="running", reason=None)


def ended(state: State, word: str, reason: str | None) -> State:
    """Return the state after an iteration that decided `word`. A failed iteration is not counted: `resume` makes it
    again.
    """
    if word == "error":
        return state._replace(open=None, status="error", word=word, reason=reason)
    counts = list(state.counts) + [0] * (len(state.stages) - len(state.counts))
    counts[state.stage] += 1
    most = state.stages[state.stage].most
    over = word == "stop" or 0 < most <= counts[state.stage]
    after = state._replace(
        stage=state.stage + over,
        counts=tuple(counts),
        open=None,
        word=word,
        reason=reason,
    )
    return after._replace(status="done" if after.over else "running")


def resumed(state: State, stages: tuple[Stage, ...]) -> State:
    """Continue with these stages: stages may be added or extended, but not replaced."""
    names = [one.name for one in stages]
    known = [one.name for one in state.stages]
    if names[: len(known)] != known:
        raise UsageError(
            f"Session {state.session} has the stages {', '.join(known)}; you gave "
            f"{', '.join(names)}. Name the same ones to resume it, or start over with --force."
        )
    last = len(known) - 1
    most = stages[last].most
    longer = state.over and state.word != "stop" and (not most or most > state.counts[last])
    stage = last if longer else state.stage
    after = state._replace(stages=stages, stage=stage, open=None)
    return after._replace(status="done" if after.over else "running")


def at_stage(state: State, name: str) -> State:
    """Move on to the stage of that name; an unknown stage is added."""
    names = [one.name for one in state.stages]
    if name in names[state.stage :]:
        return state._replace(stage=names.index(name, state.stage), status="running")
    if name in names:
        raise UsageError(f"Stage {name} of session {state.session} is over.")
    stages = (*state.stages, Stage(name=name, most=0))
    return state._replace(stages=stages, stage=len(names), status="running")


def interrupted(state: State) -> State:
    return state._replace(status="interrupted")


_FIELDS = frozenset(State._fields)


def _members(state: State) -> dict[str, Any]:
    """Return the state as JSON members: with names, for people and for later versions."""
    stages = [one._asdict() for one in state.stages]
    opened = None if state.open is None else state.open._asdict()
    return {**state._asdict(), "stages": stages, "open": opened}


def _from(members: dict[str, Any]) -> State:
    known = {name: value for name, value in members.items() if name in _FIELDS}
    known["stages"] = tuple(Stage(**one) for one in members["stages"])
    known["counts"] = tuple(int(one) for one in members.get("counts", ()))
    opened = members.get("open")
    known["open"] = None if opened is None else Open(**opened)
    state = State(**known)
    if type(state.stage) is not int:
        raise TypeError("the stage is not a number")
    return state

"""The variables by which a run reaches its processes, and the PATH on which shims are found first.

Knows their names, PYTHONPATH, PATH and SHELL; does not know runs. Every Python of a run loads this module. A program
does not see the variables: they are removed from `os.environ`, and stay in the environment that the C library passes
to children. So a child that is started past every hook inherits them too, and finds the shims.
"""

from __future__ import annotations

import os

from playhead.encoding.jsonbytes import dumps, loads
from playhead.host.lean import NamedTuple
from playhead.launch.proxy import routes
from playhead.launch.proxy.routes import Detour

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping
    from typing import Any


SHIMS = "PLAYHEAD_SHIMS"


def put_first(env: Mapping[str, str], ours: str) -> dict[str, str]:
    """Return the variables that change. `ours` is the folder and, after a colon, the user's shell."""
    folder, _, shell = ours.partition(os.pathsep)
    changed = {SHIMS: ours}
    path = env.get("PATH")
    if path is not None and not _is_first(path, folder):
        changed["PATH"] = f"{folder}{os.pathsep}{path}"
    if shell and env.get("SHELL") == shell:
        changed["SHELL"] = os.path.join(folder, os.path.basename(shell))
    return changed


def take_out(env: Mapping[str, str], ours: str) -> dict[str, str]:
    """Return the inverse of `put_first`: the values that the program itself must see."""
    folder, _, shell = ours.partition(os.pathsep)
    changed = {}
    path = env.get("PATH")
    if path is not None and _is_first(path, folder):
        changed["PATH"] = path[len(folder) + 1 :]
    if shell and env.get("SHELL") == os.path.join(folder, os.path.basename(shell)):
        changed["SHELL"] = shell
    return changed


def _is_first(path: str, folder: str) -> bool:
    return path.startswith(folder + os.pathsep)


RUN = "PLAYHEAD_RUN"
PARENT = "PLAYHEAD_PARENT"
LANE = "PLAYHEAD_LANE"
TERMINALS = "PLAYHEAD_TERMINALS"
STDIN = "PLAYHEAD_STDIN"
RESTORE = "PLAYHEAD_RESTORE"
DETOURS = "PLAYHEAD_DETOURS"
RERUN = "PLAYHEAD_RERUN"
# The parent of the command itself, where it is not the first event of a segment: in a session that was resumed.
ROOT = "PLAYHEAD_ROOT"
ALL = (RUN, PARENT, LANE, TERMINALS, STDIN, RESTORE, DETOURS, RERUN, ROOT, SHIMS)
_ALL = frozenset(ALL)

PATH = "PYTHONPATH"
SEED = "PYTHONHASHSEED"

# Holds only sitecustomize.py: any other file would shadow the program's modules.
SITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "site")


class Ticket(NamedTuple):
    """The facts that a process of a run needs. Not a dataclass: that would cost every process 10 ms."""

    # The run's folder.
    run: str
    # The event that started the process.
    parent: str
    lane: str = "main"
    # Devices: a process whose stdout or stderr is one of these records its own output, because no pipe of
    # ours is in between.
    terminals: tuple[int, ...] = ()
    # Fixed for all processes of a run, so that a replay sees sets of strings in the same order.
    seed: str | None = None
    # Variables that were changed when the process was started, with the values that the program must see; None: unset.
    restore: Mapping[str, str | None] | None = None
    # Addresses of models that lead through the proxy, for programs that cannot be hooked.
    detours: Mapping[str, Detour] | None = None
    # Whether `parent` is a call of a hooked process, and not the run itself.
    inner: bool = False
    # Whether a replay runs the process again although `inner`: it is a worker of the program.
    rerun: bool = False
    # The folder of the shims, and the shell of the user: see `put_first`.
    shims: str | None = None
    # The run's stdin, if its processes record it: kind, device and inode.
    stdin: str | None = None


def write(env: Mapping[str, str], ticket: Ticket) -> dict[str, str]:
    """Return `env` with the variables that make a Python child join the run."""
    written = {name: value for name, value in env.items() if name not in _ALL}
    restore = dict(ticket.restore or {})
    written[PATH] = _with_site(written.get(PATH))
    if ticket.seed is not None and SEED not in written:
        written[SEED] = ticket.seed
        restore.setdefault(SEED, None)
    written[RUN], written[PARENT], written[LANE] = ticket.run, ticket.parent, ticket.lane
    # Written even if it is false: a worker's own children must not inherit it.
    written[RERUN] = _flag(ticket.rerun)
    if not ticket.inner and _may_be_call(ticket.parent):
        written[ROOT] = ticket.parent
    if ticket.terminals:
        written[TERMINALS] = ",".join(map(str, ticket.terminals))
    if ticket.stdin:
        written[STDIN] = ticket.stdin
    if restore:
        written[RESTORE] = dumps(restore)
    if ticket.detours:
        parent = ticket.parent if ticket.inner else None
        values, led = routes.led(written, ticket.detours, parent)
        written.update(values)
        written[DETOURS] = dumps(led)
    if ticket.shims:
        written.update(put_first(written, ticket.shims))
    return written


class ChildEnvironment(dict[str, str]):
    """The variables of a child; `encoded` has the same ones as bytes, for functions that take either."""

    __slots__ = ("encoded",)

    encoded: dict[bytes, bytes]


# Stands for the call where it is not known yet.
_ANY_CALL = "~playhead-call~"


class Prepared:
    """The variables of all children that start with the same environment: only call and lane differ between them.

    To write and encode them for each child was a third of the cost of recording a short one.
    """

    def __init__(self, env: Mapping[str, str], ticket: Ticket) -> None:
        self.env = env
        self._written = write(env, ticket._replace(parent=_ANY_CALL))
        self._encoded = {os.fsencode(key): os.fsencode(one) for key, one in self._written.items()}
        self._of_call = [(key, one) for key, one in self._written.items() if _ANY_CALL in one]

    def of(self, call: str, lane: str, *, rerun: bool) -> ChildEnvironment:
        """Return what `write` returns for this call."""
        changed = {key: one.replace(_ANY_CALL, call) for key, one in self._of_call}
        changed[LANE], changed[RERUN] = lane, _flag(rerun)
        made = ChildEnvironment(self._written)
        made.update(changed)
        made.encoded = dict(self._encoded)
        for key, one in changed.items():
            made.encoded[os.fsencode(key)] = os.fsencode(one)
        return made


def _may_be_call(parent: str) -> bool:
    """Return whether this event may be a call. The first event of a process is none: see `bootstrap.stay`."""
    return parent.rpartition(":")[2] not in ("", "0")


def _flag(value: bool) -> str:
    return "1" if value else "0"


def read(env: Mapping[str, str]) -> Ticket | None:
    """Read the ticket of this process. None: the process belongs to no run."""
    run = env.get(RUN)
    if not run:
        return None
    restore = loads(env.get(RESTORE) or "{}")
    ways = loads(env.get(DETOURS) or "{}")
    parent = env.get(PARENT, "")
    return Ticket(
        run=run,
        parent=parent,
        inner=_may_be_call(parent) and parent != env.get(ROOT),
        rerun=env.get(RERUN) == "1",
        lane=env.get(LANE) or "main",
        terminals=tuple(int(word) for word in env.get(TERMINALS, "").split(",") if word),
        seed=env.get(SEED) if restore.get(SEED, "") is None else None,
        restore=restore,
        detours={name: Detour(*way) for name, way in ways.items()} or None,
        shims=env.get(SHIMS),
        stdin=env.get(STDIN),
    )


def hide(environ: MutableMapping[str, str], ticket: Ticket) -> None:
    """Show the program the environment that it would have without us."""
    shown: Any = getattr(environ, "_data", None)
    if shown is None:
        return  # not CPython: the program sees our variables, which does no harm
    own = _without_site(environ.get(PATH))
    for name in ALL:
        _forget(environ, name)
    for name, value in (ticket.restore or {}).items():
        if name == PATH:
            own = value
        elif value is None:
            _forget(environ, name)
        else:
            environ[name] = value
    _undo_detours(environ, ticket.detours or {})
    if ticket.shims:
        environ.update(take_out(environ, ticket.shims))
    if own is None:
        _forget(environ, PATH)
    else:
        shown[os.fsencode(PATH)] = os.fsencode(own)
    os.putenv(PATH, _with_site(own))


def _undo_detours(environ: MutableMapping[str, str], ways: Mapping[str, Detour]) -> None:
    """Restore the base URLs: a hooked program calls its models directly. Values that a shell has set since then are
    kept.
    """
    for name, way in ways.items():
        if not routes.is_through(environ.get(name, ""), ways):
            continue
        if way.had is None:
            _forget(environ, name)
        else:
            environ[name] = way.had


def standing(environ: Mapping[str, str], ticket: Ticket) -> dict[str, str]:
    """The variables for children that are started without an environment of their own; the program does not see
    them.
    """
    return {
        name: value for name, value in write(environ, ticket).items() if environ.get(name) != value
    }


def _forget(environ: MutableMapping[str, str], name: str) -> None:
    """Remove a variable from `os.environ`, but not from the environment of children: `del environ[name]` would do
    both.
    """
    environ._data.pop(os.fsencode(name), None)  # type: ignore[attr-defined]  # looked at in `hide`


def _with_site(path: str | None) -> str:
    own = _without_site(path)
    return SITE if own is None else f"{SITE}{os.pathsep}{own}"


def _without_site(path: str | None) -> str | None:
    """Return PYTHONPATH as the user set it. An empty one counts as unset: an entry "" would mean the working folder."""
    if not path or path == SITE:
        return None
    return path[len(SITE) + 1 :] if path.startswith(SITE + os.pathsep) else path

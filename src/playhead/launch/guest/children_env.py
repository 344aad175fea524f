"""Prepare the command line and the environment with which a child process joins the run. Knows the options that keep
Playhead out of a Python; does not know how processes are started (see `hooks/process/children.py`).
"""

from __future__ import annotations

import os
import sys

from playhead.host.later import Later, pattern
from playhead.launch.guest import variables
from playhead.launch.guest.variables import Ticket
from playhead.recording import deck, lanes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from playhead.launch.guest import python_argv
    from playhead.launch.proxy.routes import Detour
else:
    python_argv = Later("playhead.launch.guest.python_argv")

_CONFIGURED = pattern(r"(?m)^version(?:_info)?\s*=\s*(\d+)\.(\d+)")


class Carriage:
    """Makes the children of this process join the run."""

    def __init__(
        self,
        run: str,
        *,
        terminals: tuple[int, ...] = (),
        seed: str | None = None,
        detours: Mapping[str, Detour] | None = None,
        shims: str | None = None,
        stdin: str | None = None,
        inner: bool = False,
    ) -> None:
        """`inner`: a call of another process owns the file changes of this process, and of all its children."""
        self._run = run
        self._inner = inner
        self._detours = detours
        self._shims = shims
        self._terminals = terminals
        self._seed = seed
        self._stdin = stdin
        self._prepared: variables.Prepared | None = None

    def carry(
        self, argv: list[str], env: Mapping[str, str] | None, call: str
    ) -> tuple[list[str], dict[str, str] | None]:
        """Prepare a child to join the run. See `hooks.process.children.set_carrier`."""
        given = current_environment() if env is None else env
        if given.get(variables.RUN, self._run) != self._run:
            return (
                argv,
                None,
            )  # `playhead record` inside a recorded run: that child has a run of its own
        is_worker = not self._inner and _starts_worker()
        here = lanes.current.get()
        lane = here.worker() if is_worker else here.process()
        if env is None and type(given) is dict and not _is_closed(argv):
            prepared = self._prepared
            if prepared is None or prepared.env is not given:
                prepared = self._prepared = variables.Prepared(given, self._ticket(call, lane))
            return argv, prepared.of(call, lane, rerun=is_worker)
        return equip(argv, given, self._ticket(call, lane, rerun=is_worker))

    def _ticket(self, call: str, lane: str, *, rerun: bool = False) -> Ticket:
        return Ticket(
            run=self._run,
            parent=call,
            lane=lane,
            terminals=self._terminals,
            seed=self._seed,
            detours=self._detours,
            inner=True,
            rerun=rerun,
            shims=self._shims,
            stdin=self._stdin,
        )


# The variables of this process as the system has them, and decoded. One object: threads replace it as a whole.
_decoded: tuple[Mapping[bytes, bytes], Mapping[str, str]] = ({}, {})


def current_environment() -> Mapping[str, str]:
    """Return the variables of this process; the caller must not change them.

    `os.environ` encodes and decodes each variable whenever it is read, which was a tenth of the cost of recording a
    short child. Its dict of bytes is private, but the same in CPython 3.10 to 3.13; without it this returns
    `os.environ` itself.
    """
    global _decoded  # noqa: PLW0603  one cache for each process
    raw = getattr(os.environ, "_data", None)
    if type(raw) is not dict:
        return os.environ
    known, decoded = _decoded
    if raw != known:
        known = dict(raw)
        try:
            decoded = {os.fsdecode(name): os.fsdecode(value) for name, value in known.items()}
        except TypeError:  # not bytes: another platform, or a program that replaced it
            return os.environ
        _decoded = known, decoded
    return decoded


def _starts_worker() -> bool:
    """Return whether the current call starts a process that a replay runs again."""
    calls = deck.inside()
    return bool(calls) and not any(one.owns_changes for one in calls)


def equip(
    argv: list[str], env: Mapping[str, str], ticket: Ticket
) -> tuple[list[str], dict[str, str]]:
    """Return the argv and the environment with which a child joins the run of `ticket`."""
    if not _is_closed(argv):
        return argv, variables.write(env, ticket)
    door = python_argv.opened(argv, version_of(argv[0], env))
    if not door.without_variables:
        # `-S`, or `-I` in a Python that has no equivalent option. Its children may still be reached.
        return argv, variables.write(env, ticket)
    own = {name: value for name, value in env.items() if name.startswith("PYTHON")}
    left = {name: value for name, value in env.items() if name not in own}
    # `-E` and `-I` also make the hash seed random; our seed is restored with the other variables.
    ticket = ticket._replace(restore={**dict.fromkeys([variables.PATH]), **own})
    return door.argv, variables.write(left, ticket)


def _is_closed(argv: list[str]) -> bool:
    """Return whether this is a Python that our variables alone do not reach."""
    return bool(argv) and python_argv.is_python(argv[0]) and python_argv.is_closed(argv)


def version_of(program: str, env: Mapping[str, str]) -> tuple[int, int] | None:
    """The version of an interpreter without running it; None: it cannot be determined."""
    path = _found(program, env)
    if path is None:
        return None
    real = os.path.realpath(path)
    if real == os.path.realpath(sys.executable or ""):
        return sys.version_info[:2]
    named = python_argv.version_in
    return named(os.path.basename(real)) or _configured(path) or named(os.path.basename(path))


def _found(program: str, env: Mapping[str, str]) -> str | None:
    """Return the program that PATH leads to, as the child's own start would find it."""
    if os.sep in program:
        return program
    for folder in os.get_exec_path(env):
        path = os.path.join(folder, program)
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    return None


def _configured(path: str) -> tuple[int, int] | None:
    """The version in pyvenv.cfg, if the interpreter is a copy inside a virtual environment."""
    try:
        with open(
            os.path.join(os.path.dirname(path), os.pardir, "pyvenv.cfg"), encoding="utf-8"
        ) as file:
            found = _CONFIGURED.search(file.read())
    except (OSError, ValueError):
        return None
    return (int(found[1]), int(found[2])) if found else None

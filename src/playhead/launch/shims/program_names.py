"""Choose the programs that get a shim. Pure, but for a look at PATH; knows names and settings, not shims."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from playhead.launch.guest.children_env import version_of
from playhead.launch.guest.python_argv import is_closed, is_python, opened

# Shells, agents, and the programs with which an agent without a shell reaches the network.
DEFAULT = (
    *("aider", "bash", "claude", "codex", "curl", "docker", "gemini", "gh", "git", "hg"),
    *("kubectl", "opencode", "rg", "sh", "ssh", "wget", "zsh"),
)
_LONGEST_SHEBANG = 256


class Wanted(NamedTuple):
    """The programs that get a shim; `shell`: also the one that SHELL names; `mounted`: also over their real
    paths. `followed`: a tracer puts a shim in the place of every program instead.
    """

    names: tuple[str, ...] = ()
    shell: bool = False
    mounted: bool = False
    followed: bool = False
    # Why the command is not followed, although following would record more than names do.
    unfollowed: str | None = None

    def as_facts(self) -> dict[str, Any]:
        """Return the facts for the first event of the run, so that a replay has the same shims."""
        if not self.names and not self.followed:
            return {}
        facts = {"names": list(self.names), "shell": self.shell, "mounted": self.mounted}
        return {"shims": {**facts, "followed": True} if self.followed else facts}

    def found(self, env: Mapping[str, str]) -> Wanted:
        """Keep the programs that the command would find. A shim for a missing program would make it seem
        installed.
        """
        names = tuple(name for name in self.names if where_is(name, env) is not None)
        return self._replace(names=names)


def of_facts(facts: Mapping[str, Any]) -> Wanted:
    """The inverse of `as_facts`; a run without shims has none in its replay."""
    written = facts.get("shims")
    written = written if isinstance(written, dict) else {}
    listed = written.get("names")
    # A name that contains a folder would let the tape choose where a shim is written or a program is looked for.
    names = tuple(
        one
        for one in (listed if isinstance(listed, list) else ())
        if isinstance(one, str) and one not in ("", ".", "..") and not {"/", "\0"} & {*one}
    )
    shell, mounted = bool(written.get("shell")), bool(written.get("mounted"))
    return Wanted(names=names, shell=shell, mounted=mounted, followed=bool(written.get("followed")))


def wanted(
    command: list[str],
    *,
    asked: Iterable[str] = (),
    configured: tuple[str, ...] | None = None,
    mounted: bool = False,
    env: Mapping[str, str] = os.environ,
) -> Wanted:
    """The names for this command. Names that the user lists are added to the defaults. A command that is Python
    needs no defaults, because its own hooks record its subprocesses.
    """
    own = tuple(asked)
    usual = DEFAULT if configured is None else configured
    needless = configured is None and command and _is_hooked(command, env)
    if needless and not own and not mounted:
        return Wanted()
    # Agents use the user's shell for their own purposes: a taped shell writes none of the files that Claude Code looks
    # for afterwards. So it gets a shim only if the user named it, and not as one of the defaults.
    named = {*(configured or ()), *own}
    shell = os.path.basename(env.get("SHELL", "")) in named
    names = tuple(sorted({*usual, *own}))
    # A list of names is the user's choice. Without one, every program that the command starts is recorded.
    followed = configured is None and not mounted and not needless
    return Wanted(names=names, shell=shell, mounted=mounted, followed=followed)


def where_is(name: str, env: Mapping[str, str]) -> str | None:
    if os.sep in name:
        return name if _is_program(name) else None
    paths = (os.path.join(folder, name) for folder in os.get_exec_path(env))
    return next((path for path in paths if _is_program(path)), None)


def _is_program(path: str) -> bool:
    return os.access(path, os.X_OK) and os.path.isfile(path)


def _is_hooked(command: Sequence[str], env: Mapping[str, str]) -> bool:
    """Return whether the command is a Python that can be hooked, or a script of one. A Python with `-S` loads no
    hooks, so the programs that it starts are followed like those of any other command.
    """
    if is_python(command[0]):
        return _lets_hooks_in(command, env)
    path = where_is(command[0], env)
    try:
        with open(path or "", "rb") as file:
            first = file.readline(_LONGEST_SHEBANG).decode("utf-8", "replace")
    except OSError:
        return False
    words = first[2:].split() if first.startswith("#!") else []
    while words and os.path.basename(words[0]) in ("env", "-S"):
        words = words[1:]
    return bool(words) and is_python(words[0]) and _lets_hooks_in(words, env)


def _lets_hooks_in(argv: Sequence[str], env: Mapping[str, str]) -> bool:
    return not is_closed(argv) or opened(argv, version_of(argv[0], env)).without_variables

"""A program that becomes another one: `os.exec*`. Knows that nobody comes back from there."""

from __future__ import annotations

import os

from playhead.hooks.guest import Patches, need
from playhead.hooks.process import children
from playhead.hooks.process.builtin import Builtin
from playhead.hooks.process.flight import Flight, leave_all, within
from playhead.hooks.process.request import call_of, text_of
from playhead.host.later import Later, pattern
from playhead.recording import deck

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any, NoReturn

    from playhead.hooks.http import revive
    from playhead.hooks.process import script as process_script
    from playhead.hooks.process import stand_in as process_stand_in

    Exec = Callable[..., NoReturn]
else:
    # Only what replays needs these: see `playhead.host.later`.
    process_stand_in = Later("playhead.hooks.process.stand_in")
    process_script = Later("playhead.hooks.process.script")
    revive = Later("playhead.hooks.http.revive")


_PYTHON = pattern(r"(?:python|pypy)[\d.]*")


def hook(module: ModuleType, patches: Patches) -> None:
    need(module, "execv", "execve", "execvp", "execvpe")
    become = module.execve
    # The forms with `l` call these by their names in `os`.
    for name, with_env in (("execv", module.execve), ("execvp", module.execvpe)):
        patches.replace(module, name, _exec(with_env, become))
        patches.replace(module, f"{name}e", _exec(None, become))


def _exec(with_env: Exec | None, become: Exec) -> Callable[[Exec], Builtin]:
    """`with_env` is the form of the function that takes an environment; None: it does so itself."""
    return lambda original: Builtin(_executing(original, with_env or original, become))


def _executing(original: Exec, with_env: Exec, become: Exec) -> Exec:
    def execute(file: Any, args: Any, env: Any = None) -> NoReturn:
        given = () if env is None else (env,)
        open_deck = deck.active()
        if open_deck is None or within.get():
            original(file, args, *given)
        words = [text_of(word) for word in args]
        program = text_of(file)
        other = None if words[:1] == [program] else file
        crossing = open_deck.open(call_of(via="os.exec", argv=words, executable=other, env=env))
        flight = Flight(crossing)
        taped = crossing.taped
        # A Python that takes over is the program itself, going on: it replays its own part.
        if taped is not None and not _PYTHON.fullmatch(os.path.basename(program)):
            if taped.how == "raised":
                error = revive.revived(taped.error, flight.name)
                flight.failed(error)
                raise error
            within.set("stand-in")  # and nobody comes back to reset it
            ending = process_script.ending_of(taped.value, taped.facts)
            become(process_stand_in.SHELL, ["sh", "-c", process_stand_in.in_shell(ending)], {})
        carried, made = children.carry([program, *words[1:]], env, crossing)
        argv = args if carried[1:] == words[1:] else [*words[:1], *carried[1:]]
        if _is_there(program, env):
            # Written now, because there is no after.
            leave_all()
            crossing.left(replaced=True)
        token = within.set("exec")
        try:
            if made is None:
                original(file, argv, *given)
            else:
                with_env(file, argv, made)
        except BaseException as error:
            flight.failed(error)
            raise
        finally:
            within.reset(token)

    return execute


def _is_there(program: str, env: Any) -> bool:
    """Whether an exec of it will succeed, as far as can be told before."""
    folders = [""] if os.path.dirname(program) else os.get_exec_path(env)
    return any(
        os.access(path := os.path.join(folder, program), os.X_OK) and os.path.isfile(path)
        for folder in folders
    )

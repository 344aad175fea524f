"""A program that replaces itself by another one: `os.exec*`, which does not return when it succeeds."""

from __future__ import annotations

import os

from playhead.hooks.guest import Patches, need
from playhead.hooks.process import children
from playhead.hooks.process.builtin import Builtin
from playhead.hooks.process.flight import ProcessAdapter, leave_all, within
from playhead.hooks.process.request import call_of, text_of
from playhead.host.later import Later, pattern
from playhead.recording import deck
from playhead.recording.deck import Crossing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any, NoReturn

    from playhead.hooks.process import script as process_script
    from playhead.hooks.process import stand_in as process_stand_in

    Exec = Callable[..., NoReturn]
else:
    # Only what replays needs these: see `playhead.host.later`.
    process_stand_in = Later("playhead.hooks.process.stand_in")
    process_script = Later("playhead.hooks.process.script")


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
        other = None if words[:1] == [text_of(file)] else file
        call = call_of(via="os.exec", argv=words, executable=other, env=env)
        open_deck.perform(call, _Exec(original, with_env, become, (file, args), env))
        raise AssertionError("an exec that succeeds does not return")

    return execute


class _Exec(ProcessAdapter):
    """One `os.exec*`."""

    def __init__(
        self,
        original: Exec,
        with_env: Exec,
        become: Exec,
        given: tuple[Any, Any],
        env: Any,
    ) -> None:
        self._original = original
        self._with_env = with_env
        self._become = become
        self._given = given
        self._env = env

    def live(self, crossing: Crossing) -> NoReturn:
        self.begin(crossing)
        self._replace(crossing)

    def serve(self, crossing: Crossing) -> NoReturn:
        self.begin(crossing)
        program = text_of(self._given[0])
        if _PYTHON.fullmatch(os.path.basename(program)):
            # A Python that takes over is the rest of the program: it replays its own part.
            with crossing:
                self._replace(crossing)
        taped = self.taped_start(crossing)
        within.set("stand-in")  # never reset: the exec does not return
        ending = process_script.ending_of(taped.value, taped.facts)
        self._become(process_stand_in.SHELL, ["sh", "-c", process_stand_in.in_shell(ending)], {})

    def _replace(self, crossing: Crossing) -> NoReturn:
        (file, args), env = self._given, self._env
        words, program = [text_of(word) for word in args], text_of(file)
        carried, made = children.carry([program, *words[1:]], env, crossing)
        argv = args if carried[1:] == words[1:] else [*words[:1], *carried[1:]]
        if _is_there(program, env):
            # Written before the exec, because no code of ours runs after it.
            leave_all()
            crossing.left(replaced=True)
        token = within.set("exec")
        try:
            if made is not None:
                self._with_env(file, argv, made)
            self._original(file, argv, *(() if env is None else (env,)))
        finally:
            within.reset(token)


def _is_there(program: str, env: Any) -> bool:
    """Whether an exec of this program will succeed, as far as that is known before."""
    folders = [""] if os.path.dirname(program) else os.get_exec_path(env)
    return any(
        os.access(path := os.path.join(folder, program), os.X_OK) and os.path.isfile(path)
        for folder in folders
    )

"""Hook the functions of `os` for processes: `system`, `exec*`, signals, waits, and the functions that read from and
write to descriptors of children. `spawn` and `pty_children` hook `spawn*` and `forkpty`.

An `exec*` that succeeds does not return, so its outcome is written before it.
"""

from __future__ import annotations

import os
import posix
from itertools import count

from playhead import clock
from playhead.hooks.guest import Patches, need
from playhead.hooks.process import children
from playhead.hooks.process import (
    pty_children as process_pty,
)
from playhead.hooks.process import (
    spawn as process_spawn,
)
from playhead.hooks.process.exits import facts_of
from playhead.hooks.process.flight import ProcessAdapter, by_pid, leave_all, within
from playhead.hooks.process.pipes import Closing, Reading, Writing
from playhead.hooks.process.request import call_of, text_of
from playhead.hooks.replacements import Builtin, like_builtin
from playhead.host.later import Later, pattern
from playhead.recording import deck, lanes, order_slot, points
from playhead.recording.adapter import Adapter
from playhead.recording.deck import Crossing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any, NoReturn

    from playhead.hooks.process import script as process_script
    from playhead.hooks.process import stand_in as process_stand_in

    Exec = Callable[..., NoReturn]
    from playhead.hooks import answers
    from playhead.hooks.process import output_files
    from playhead.hooks.process import stage as process_stage
else:
    process_stand_in = Later("playhead.hooks.process.stand_in")
    process_script = Later("playhead.hooks.process.script")
    output_files = Later("playhead.hooks.process.output_files")
    process_stage = Later("playhead.hooks.process.stage")
    answers = Later("playhead.hooks.answers")


_PYTHON = pattern(r"(?:python|pypy)[\d.]*")
_INTERPRETER = pattern(r"[/ ](?:python|pypy)[\d.]*(?:[\s'\"]|$)")
_FIRST_BYTES = 512


def hook_exec(module: ModuleType, patches: Patches) -> None:
    need(module, "execv", "execve", "execvp", "execvpe")
    become = module.execve
    # The forms with `l` call these by their names in `os`.
    for name, with_env in (("execv", module.execve), ("execvp", module.execvpe)):
        patches.replace(module, name, _exec(with_env, become))
        patches.replace(module, f"{name}e", _exec(None, become))


def _exec(with_env: Exec | None, become: Exec) -> Callable[[Exec], Builtin]:
    """Wrap an `exec*` function. `with_env` is the variant that takes an environment; None if `original` takes one."""
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
        if _PYTHON.fullmatch(os.path.basename(program)) or _is_script(program, self._env):
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


def _is_script(program: str, env: Any) -> bool:
    """Return whether this program is a Python script: `jupyter nbconvert` executes the script `jupyter-nbconvert`."""
    for path in _candidates(program, env):
        try:
            with open(path, "rb") as file:
                first = file.read(_FIRST_BYTES).decode("latin-1")
        except OSError:
            continue
        # An installer writes a line of shell in front of Python if the path of the interpreter is long.
        return first.startswith("#!") and any(
            _INTERPRETER.search(line) for line in first.split("\n")[:2]
        )
    return False


def _candidates(program: str, env: Any) -> list[str]:
    folders = [""] if os.path.dirname(program) else os.get_exec_path(env)
    return [os.path.join(folder, program) for folder in folders]


def _is_there(program: str, env: Any) -> bool:
    """Return whether an exec of this program will succeed, as far as that can be known beforehand."""
    return any(
        os.access(path, os.X_OK) and os.path.isfile(path) for path in _candidates(program, env)
    )


def hook(module: ModuleType, patches: Patches) -> None:
    need(module, "read", "write", "close", "system", "kill", "killpg", "waitpid", "wait")
    patches.replace(module, "read", Reading)
    patches.replace(module, "write", Writing)
    patches.replace(module, "close", Closing)
    patches.replace(module, "system", like_builtin(_system))
    patches.replace(module, "kill", like_builtin(_kill))
    patches.replace(module, "killpg", like_builtin(_kill))
    if hasattr(module, "fork"):
        patches.replace(module, "fork", like_builtin(_fork))
    for name in ("waitpid", "wait", "wait3", "wait4"):
        if hasattr(module, name):
            patches.replace(module, name, like_builtin(_waiting))
    if hasattr(module, "waitid"):
        patches.replace(module, "waitid", like_builtin(_waitid))
    process_spawn.hook(module, patches)
    hook_exec(module, patches)
    process_pty.hook_forkpty(module, patches)
    patches.on_undo(leave_all)


def _system(original: Callable[..., int]) -> Callable[..., int]:
    def system(command: Any) -> int:
        open_deck = deck.active()
        if open_deck is None or within.get():
            return original(command)
        status: int = open_deck.perform(
            call_of(via="os.system", shell=command), _System(original, command)
        )
        return status

    return system


class _System(Adapter):
    """One `os.system`. It returns when the process has ended."""

    def __init__(self, original: Callable[..., int], command: Any) -> None:
        self._original = original
        self._command = command
        self._wrote: dict[str, Any] = {}

    def live(self, crossing: Crossing) -> int:
        _, env = children.carry(["/bin/sh", "-c", os.fsdecode(self._command)], None, crossing)
        output = output_files.inherited_by(crossing)
        try:
            with children.LentVariables(env):
                return self._original(self._command)
        finally:
            self._wrote = output.end()

    def observe(self, crossing: Crossing, result: int) -> int:
        code = os.waitstatus_to_exitcode(result)
        crossing.returned(code, **facts_of(code), **self._wrote)
        return result

    def serve(self, crossing: Crossing) -> int:
        taped = crossing.taped
        if taped is not None and taped.how == "cut":
            crossing.cut()  # here the recorded run was killed, and so is this one
        if taped is None or taped.how != "returned":
            raise answers.revived(None if taped is None else taped.error, crossing.call.name)
        code = int(taped.value)
        output_files.print_again(taped.pieces)
        crossing.returned(code, **facts_of(code))
        return code << 8 if code >= 0 else -code


def _kill(original: Callable[[int, int], None]) -> Callable[[int, int], None]:
    """Wrap `kill` or `killpg`: a group has the number of the process that leads it."""

    def kill(pid: int, number: int, /) -> None:
        flight = by_pid.get(pid)
        if flight is not None and number:
            flight.signalled(number)
            if flight.player is not None and flight.player.signalled(number):
                return None
        if (
            flight is None
            and number
            and _is_self(original, pid)
            and order_slot.send_to_self(number)
        ):
            return None
        return original(pid, number)

    return kill


def _is_self(original: Callable[[int, int], None], pid: int) -> bool:
    """Return whether a signal to this process or group reaches the program itself."""
    if getattr(original, "__name__", "") == "killpg":
        return pid in (0, os.getpgrp())
    return pid in (0, clock.pid(), -os.getpgrp())


# The number of each child that the program forked itself, by its process id.
_forked: dict[int, int] = {}
_forks = count(1)


def _forget_forks() -> None:
    global _forks  # noqa: PLW0603  one count per process
    _forks = count(1)
    _forked.clear()


os.register_at_fork(after_in_child=_forget_forks)


def _fork(original: Callable[[], int]) -> Callable[[], int]:
    def fork() -> int:
        number = next(_forks)
        pid = original()
        if pid:
            _forked[pid] = number
        return pid

    return fork


def _reap_any(original: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Wait for any child, and return the same fork as in the recorded run: which of several ends first is a race."""
    lane, head = lanes.current.get(), order_slot.active()
    if head is not None:
        number = head.table.reaped(lane.name, lane.count(points.REAPED))
        if number == 0:
            return (0, 0)
        pid = next((pid for pid, one in _forked.items() if one == number), None)
        if pid is not None:
            _forked.pop(pid)
            return posix.waitpid(pid, 0)
        return original(*args)
    answer = original(*args)
    points.note(lane, points.REAPED, _forked.pop(answer[0], None) if answer[0] else 0)
    return answer


def _waiting(original: Callable[..., Any]) -> Callable[..., Any]:
    is_simple = getattr(original, "__name__", "") in ("wait", "waitpid")

    def wait(*args: Any, **kwargs: Any) -> Any:
        played = by_pid.get(args[0]) if args else None
        is_any = is_simple and not kwargs and (not args or args[0] == -1)
        if is_any and _forked and order_slot.is_kept():
            answer = _reap_any(original, args)
        elif played is not None and played.player is not None:
            answer = process_stage.visibly(
                lambda: original(*args, **kwargs), lambda: _is_running(args[0])
            )
        else:
            answer = original(*args, **kwargs)
        _forked.pop(answer[0], None)
        if not answer[0]:
            if args and (flight := by_pid.get(args[0])) is not None:
                flight.is_alive()
            return answer
        flight = by_pid.get(answer[0])
        if flight is not None and not os.WIFSTOPPED(answer[1]) and not os.WIFCONTINUED(answer[1]):
            flight.exited(os.waitstatus_to_exitcode(answer[1]))
        return answer

    return wait


def _is_running(pid: int) -> bool:
    """Return whether a child has not ended yet. Does not reap the child."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except OSError:
        return False


def _waitid(original: Callable[..., Any]) -> Callable[..., Any]:
    def waitid(*args: Any, **kwargs: Any) -> Any:
        answer = original(*args, **kwargs)
        flight = by_pid.get(answer.si_pid) if answer is not None else None
        if flight is not None:
            if answer.si_code == os.CLD_EXITED:
                flight.exited(answer.si_status)
            elif answer.si_code in (os.CLD_KILLED, os.CLD_DUMPED):
                flight.exited(-answer.si_status)
        return answer

    return waitid

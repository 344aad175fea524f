"""Functions of `os` that concern processes: `system`, signals, waiting, and the descriptors by which a program
reads from and writes to its children. `spawn*`, `exec*` and `forkpty` have modules of their own.
"""

from __future__ import annotations

import os

from playhead.hooks.guest import Patches, need
from playhead.hooks.process import (
    children,
)
from playhead.hooks.process import (
    exec as process_exec,
)
from playhead.hooks.process import (
    pty_children as process_pty,
)
from playhead.hooks.process import (
    spawn as process_spawn,
)
from playhead.hooks.process.builtin import like_builtin
from playhead.hooks.process.flight import by_pid, facts_of, leave_all, within
from playhead.hooks.process.pipes import Closing, Reading, Writing
from playhead.hooks.process.request import call_of
from playhead.host.later import Later
from playhead.recording import deck
from playhead.recording.adapter import Adapter
from playhead.recording.deck import Crossing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from playhead.hooks.http import revive
    from playhead.hooks.process import inherited_output as process_inherited
    from playhead.hooks.process import stage as process_stage
else:
    # What few programs need, or only replays: see `playhead.host.later`.
    process_inherited = Later("playhead.hooks.process.inherited_output")
    process_stage = Later("playhead.hooks.process.stage")
    revive = Later("playhead.hooks.http.revive")


def hook(module: ModuleType, patches: Patches) -> None:
    need(module, "read", "write", "close", "system", "kill", "killpg", "waitpid", "wait")
    patches.replace(module, "read", Reading)
    patches.replace(module, "write", Writing)
    patches.replace(module, "close", Closing)
    patches.replace(module, "system", like_builtin(_system))
    patches.replace(module, "kill", like_builtin(_kill))
    patches.replace(module, "killpg", like_builtin(_kill))
    for name in ("waitpid", "wait", "wait3", "wait4"):
        if hasattr(module, name):
            patches.replace(module, name, like_builtin(_waiting))
    if hasattr(module, "waitid"):
        patches.replace(module, "waitid", like_builtin(_waitid))
    process_spawn.hook(module, patches)
    process_exec.hook(module, patches)
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
        output = process_inherited.of(crossing)
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
            raise revive.revived(None if taped is None else taped.error, crossing.call.name)
        code = int(taped.value)
        process_inherited.print_again(taped.pieces)
        crossing.returned(code, **facts_of(code))
        return code << 8 if code >= 0 else -code


def _kill(original: Callable[[int, int], None]) -> Callable[[int, int], None]:
    """Also for `killpg`: a group has the number of the process that leads it."""

    def kill(pid: int, number: int, /) -> None:
        flight = by_pid.get(pid)
        if flight is not None and number:
            flight.signalled(number)
            if flight.player is not None and flight.player.signalled(number):
                return None
        return original(pid, number)

    return kill


def _waiting(original: Callable[..., Any]) -> Callable[..., Any]:
    def wait(*args: Any, **kwargs: Any) -> Any:
        played = by_pid.get(args[0]) if args else None
        if played is not None and played.player is not None:
            answer = process_stage.visibly(
                lambda: original(*args, **kwargs), lambda: _is_running(args[0])
            )
        else:
            answer = original(*args, **kwargs)
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
    """Whether a child has not ended yet; it stays to be waited for."""
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

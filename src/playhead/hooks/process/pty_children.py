"""Record and replay children on a new terminal: `os.forkpty`, and `pty.fork` and `pty.spawn`, which call it.

Such a child is a copy of the program until it calls exec. A replay makes no copy: the parent gets a stand-in on a real
terminal, and the code of the child's branch never runs.
"""

from __future__ import annotations

import os

from playhead.hooks.guest import Patches, need
from playhead.hooks.process.flight import ProcessAdapter, flight_of, given_crossing, within
from playhead.hooks.process.pipes import expect_master
from playhead.hooks.process.request import call_of
from playhead.hooks.process.spawn import start_stand_in
from playhead.hooks.replacements import like_builtin
from playhead.host.later import Later
from playhead.recording import deck
from playhead.recording.adapter import Adapter
from playhead.recording.deck import Crossing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from playhead.hooks.process import player as process_player
    from playhead.hooks.process import script as process_script
else:
    # Only a replay needs these: see `playhead.host.later`.
    process_player = Later("playhead.hooks.process.player")
    process_script = Later("playhead.hooks.process.script")


def hook_forkpty(module: ModuleType, patches: Patches) -> None:
    need(module, "forkpty", "openpty", "posix_spawn")
    spawn = module.posix_spawn
    patches.replace(module, "forkpty", like_builtin(lambda real: _forkpty(real, spawn)))


def hook(module: ModuleType, patches: Patches) -> None:
    need(module, "spawn", "fork")
    patches.replace(module, "spawn", _spawn)


def _forkpty(
    original: Callable[[], tuple[int, int]], spawn: Callable[..., int]
) -> Callable[[], tuple[int, int]]:
    def forkpty() -> tuple[int, int]:
        open_deck = deck.active()
        given = given_crossing.get()
        if open_deck is None or (within.get() and given is None):
            return original()
        adapter = _Forkpty(original, spawn)
        if given is not None:
            return adapter.serve(given) if given.taped is not None else adapter.within(given)
        call = call_of(via="os.forkpty", stdin="tty", stdout="tty", stderr="tty")
        made: tuple[int, int] = open_deck.perform(call, adapter)
        return made

    return forkpty


class _Forkpty(ProcessAdapter):
    """One `os.forkpty`."""

    def __init__(self, original: Callable[[], tuple[int, int]], spawn: Callable[..., int]) -> None:
        self._original = original
        self._spawn = spawn

    def live(self, crossing: Crossing) -> tuple[int, int]:
        self.begin(crossing)
        return self._original()

    def within(self, crossing: Crossing) -> tuple[int, int]:
        """Fork for a crossing that an outer hook performs."""
        try:
            made = self.live(crossing)
        except BaseException as error:
            self.failed(crossing, error)
            raise
        return self.observe(crossing, made)

    def observe(self, crossing: Crossing, result: tuple[int, int]) -> tuple[int, int]:
        pid, master = result
        if pid:  # in the parent
            self.flight.started(pid)
            expect_master(master, self.flight)
        return result

    def serve(self, crossing: Crossing) -> tuple[int, int]:
        flight = self.begin(crossing)
        taped = self.taped_start(crossing)
        master, slave = os.openpty()
        player = flight.player = process_player.Player(process_script.script_of(taped), flight)
        player.take("stdout", slave)
        player.take("stdin", os.dup(slave))
        pid = start_stand_in(self._spawn, player, setsid=True)
        flight.started(pid)
        expect_master(master, flight)
        player.go()
        return pid, master


def _spawn(original: Callable[..., int]) -> Callable[..., int]:
    def spawn(argv: Any, *args: Any, **kwargs: Any) -> int:
        open_deck = deck.active()
        if open_deck is None or within.get():
            return original(argv, *args, **kwargs)
        words = [argv] if isinstance(argv, str) else list(argv)
        call = call_of(via="pty.spawn", argv=words, stdin="tty", stdout="tty", stderr="tty")
        status: int = open_deck.perform(call, _PtySpawn(lambda: original(argv, *args, **kwargs)))
        return status

    return spawn


class _PtySpawn(Adapter):
    """One `pty.spawn`, which calls `os.forkpty`: that hook performs or serves the crossing."""

    streams = True

    def __init__(self, spawn: Callable[[], int]) -> None:
        self._spawn = spawn

    def live(self, crossing: Crossing) -> int:
        token, given = within.set("spawn"), given_crossing.set(crossing)
        try:
            return self._spawn()
        finally:
            given_crossing.reset(given)
            within.reset(token)

    def observe(self, crossing: Crossing, result: int) -> int:
        # `pty` copied `waitpid` and `close` out of `os` before we replaced them there.
        if (flight := flight_of(crossing)) is not None:
            flight.exited(os.waitstatus_to_exitcode(result))
            flight.ended("stdout")
        return result

    def serve(self, crossing: Crossing) -> int:
        return self.observe(crossing, self.live(crossing))

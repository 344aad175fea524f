"""Children on a terminal of their own: `os.forkpty`, and `pty.fork` and `pty.spawn` above it.

Knows that such a child is a copy of the program until it execs. In a replay there is no copy: the
program's own side gets a stand-in on a real terminal, and the child's branch is never run.
"""

from __future__ import annotations

import os

from playhead.hooks.guest import Patches, need
from playhead.hooks.process.builtin import like_builtin
from playhead.hooks.process.flight import Flight, flight_of, given_crossing, within
from playhead.hooks.process.pipes import expect_master
from playhead.hooks.process.request import call_of
from playhead.hooks.process.spawn import start_stand_in
from playhead.host.later import Later
from playhead.recording import deck

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from playhead.hooks.http import revive
    from playhead.hooks.process import player as process_player
    from playhead.hooks.process import script as process_script
    from playhead.recording.calls import Taped
else:
    # Only what replays needs these: see `playhead.host.later`.
    process_player = Later("playhead.hooks.process.player")
    process_script = Later("playhead.hooks.process.script")
    revive = Later("playhead.hooks.http.revive")


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
        call = call_of(via="os.forkpty", stdin="tty", stdout="tty", stderr="tty")
        crossing = given or open_deck.open(call)
        flight = Flight(crossing)
        if crossing.taped is not None:
            return _serve(spawn, flight, crossing.taped)
        try:
            with crossing:
                pid, master = original()
        except BaseException as error:
            flight.failed(error)
            raise
        if pid:
            flight.started(pid)
            expect_master(master, flight)
        return pid, master

    return forkpty


def _serve(spawn: Callable[..., int], flight: Flight, taped: Taped) -> tuple[int, int]:
    if taped.how == "raised":
        error = revive.revived(taped.error, flight.name)
        flight.failed(error)
        raise error
    master, slave = os.openpty()
    player = flight.player = process_player.Player(process_script.script_of(taped), flight)
    player.take("stdout", slave)
    player.take("stdin", os.dup(slave))
    pid = start_stand_in(spawn, player, setsid=True)
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
        crossing = open_deck.open(call)
        token, given = within.set("spawn"), given_crossing.set(crossing)
        try:
            status = original(argv, *args, **kwargs)
        finally:
            given_crossing.reset(given)
            within.reset(token)
        # `pty` took `waitpid` and `close` out of `os` before we could put ours there.
        if (flight := flight_of(crossing)) is not None:
            flight.exited(os.waitstatus_to_exitcode(status))
            flight.ended("stdout")
        return status

    return spawn

"""Record and replay processes started by `os.posix_spawn` and `os.spawn*`, which are observed by their pid. Knows file
actions and the modes of spawning. The program gives the streams of such a child as descriptors.
"""

from __future__ import annotations

import os

from playhead.hooks.guest import Patches, need
from playhead.hooks.process import children
from playhead.hooks.process.exits import facts_of
from playhead.hooks.process.flight import Flight, ProcessAdapter, within
from playhead.hooks.process.output_files import expect_file
from playhead.hooks.process.pipes import expect
from playhead.hooks.process.request import call_of, kind_of_fd, text_of
from playhead.hooks.replacements import like_builtin
from playhead.host.later import Later
from playhead.recording import deck
from playhead.recording.crossing import END
from playhead.recording.deck import Crossing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType
    from typing import Any

    from playhead.hooks.process import output_files
    from playhead.hooks.process import (
        player as process_player,
    )
    from playhead.hooks.process import (
        script as process_script,
    )
    from playhead.recording.calls import Taped

    Spawn = Callable[..., int]
else:
    # Few programs need these modules, or only replays do: see `playhead.host.later`.
    output_files = Later("playhead.hooks.process.output_files")
    process_player = Later("playhead.hooks.process.player")
    process_script = Later("playhead.hooks.process.script")

_NAMES = {0: "stdin", 1: "stdout", 2: "stderr"}


def hook(module: ModuleType, patches: Patches) -> None:
    need(module, "posix_spawn", "posix_spawnp", "spawnv", "spawnve", "spawnvp", "spawnvpe")
    spawn = module.posix_spawn
    patches.replace(module, "posix_spawn", like_builtin(lambda real: _posix_spawn(real, spawn)))
    patches.replace(module, "posix_spawnp", like_builtin(lambda real: _posix_spawn(real, spawn)))
    # The forms with `l` call these by their names in `os`.
    for name, function in (("spawnv", module.spawnve), ("spawnvp", module.spawnvpe)):
        patches.replace(module, name, _spawnv(function, spawn))
        patches.replace(module, f"{name}e", _spawnv(None, spawn))


def _posix_spawn(original: Callable[..., int], spawn: Callable[..., int]) -> Callable[..., int]:
    def posix_spawn(path: Any, argv: Any, env: Any, /, **options: Any) -> int:
        open_deck = deck.active()
        if open_deck is None or within.get():
            return original(path, argv, env, **options)
        words = [text_of(word) for word in argv]
        ends = _ends(options.get("file_actions") or ())
        kinds = {_NAMES[fd]: kind_of_fd(given) for fd, given in ends.items()}
        other = None if words[:1] == [text_of(path)] else path
        call = call_of(via="os.posix_spawn", argv=words, executable=other, env=env, **kinds)
        adapter = _PosixSpawn(original, spawn, (path, argv, env), options, ends)
        pid: int = open_deck.perform(call, adapter)
        return pid

    return posix_spawn


class _StandIn(ProcessAdapter):
    """Starts a stand-in for a taped process."""

    spawn: Spawn

    def stand_in(self, taped: Taped, ends: dict[int, int], options: Any) -> int:
        flight = self.flight
        player = flight.player = process_player.Player(process_script.script_of(taped), flight)
        for fd, given in ends.items():
            if fd != 2 or given != ends.get(1):
                player.take(_NAMES[fd], os.dup(given))
        kept = {name: options[name] for name in ("setpgroup", "setsid") if name in options}
        pid = start_stand_in(self.spawn, player, **kept)
        _started(flight, pid, ends)
        player.go()
        return pid


class _PosixSpawn(_StandIn):
    """One `os.posix_spawn` or `posix_spawnp`."""

    def __init__(
        self,
        original: Spawn,
        spawn: Spawn,
        given: tuple[Any, Any, Any],
        options: dict[str, Any],
        ends: dict[int, int],
    ) -> None:
        self.spawn = spawn
        self._original = original
        self._given = given
        self._options = options
        self._ends = ends

    def live(self, crossing: Crossing) -> int:
        flight = self.begin(crossing)
        path, argv, env = self._given
        for fd, given in self._ends.items():
            if fd and given > 2:
                expect_file(given, flight, _NAMES[fd])
        words = [text_of(word) for word in argv]
        program, made = children.carry([text_of(path), *words[1:]], env, crossing)
        argv = argv if program[1:] == words[1:] else [*words[:1], *program[1:]]
        return self._original(path, argv, env if made is None else made, **self._options)

    def observe(self, crossing: Crossing, result: int) -> int:
        _started(self.flight, result, self._ends)
        return result

    def serve(self, crossing: Crossing) -> int:
        self.begin(crossing)
        return self.stand_in(self.taped_start(crossing), self._ends, self._options)


def _ends(file_actions: Iterable[Any]) -> dict[int, int]:
    """Return which of our descriptors become the child's stdin, stdout and stderr."""
    ends: dict[int, int] = {}
    for action in file_actions:
        if action[0] == os.POSIX_SPAWN_DUP2 and action[2] in _NAMES:
            ends[action[2]] = ends.get(action[1], action[1])
    return ends


def _started(flight: Flight, pid: int, ends: dict[int, int]) -> None:
    flight.started(pid)
    for fd, given in ends.items():
        if given > 2:
            expect(given, flight, _NAMES[fd])


def start_stand_in(
    spawn: Callable[..., int],
    player: process_player.Player,
    *,
    terminal: str | None = None,
    **options: Any,
) -> int:
    """Start a process of ours in place of a taped one; on a `terminal`, if the taped one had one."""
    output = (terminal or os.devnull, os.O_RDWR if terminal else os.O_WRONLY, 0)
    actions = [(os.POSIX_SPAWN_OPEN, fd, *output) for fd in (1, 2)]
    line = (os.POSIX_SPAWN_DUP2, player.ready(), 0)
    token = within.set("stand-in")
    try:
        return spawn(player.stand_in.path, ["sh"], {}, file_actions=[*actions, line], **options)
    except BaseException:
        player.stop()
        raise
    finally:
        within.reset(token)


def _spawnv(with_env: Spawn | None, spawn: Spawn) -> Callable[[Spawn], Spawn]:
    """Wrap a `spawn*` function. `with_env` is the variant that takes an environment; None if `original` takes one."""
    return lambda original: _spawning(original, with_env or original, spawn)


def _spawning(original: Spawn, with_env: Spawn, spawn: Spawn) -> Spawn:
    def spawnv(mode: int, file: Any, args: Any, env: Any = None) -> int:
        given = () if env is None else (env,)
        open_deck = deck.active()
        if open_deck is None or within.get():
            return original(mode, file, args, *given)
        words = [text_of(word) for word in args]
        other = None if words[:1] == [text_of(file)] else file
        call = call_of(via="os.spawn", argv=words, executable=other, env=env)
        adapter = _Spawnv(original, with_env, spawn, (mode, file, args), env)
        answer: int = open_deck.perform(call, adapter)
        return answer

    return spawnv


class _Spawnv(_StandIn):
    """One `os.spawn*`: its result is a pid, or an exit code where the program waits for it."""

    def __init__(
        self,
        original: Spawn,
        with_env: Spawn,
        spawn: Spawn,
        given: tuple[int, Any, Any],
        env: Any,
    ) -> None:
        self.spawn = spawn
        self._original = original
        self._with_env = with_env
        self._given = given
        self._env = env
        self._waits = given[0] == os.P_WAIT
        self._wrote: dict[str, Any] = {}

    def live(self, crossing: Crossing) -> int:
        self.begin(crossing)
        (mode, file, args), env = self._given, self._env
        words = [text_of(word) for word in args]
        program, made = children.carry([text_of(file), *words[1:]], env, crossing)
        argv = args if program[1:] == words[1:] else [*words[:1], *program[1:]]
        output = output_files.inherited_by(crossing) if self._waits else None
        token = within.set("spawn")
        try:
            if made is not None:
                return self._with_env(mode, file, argv, made)
            return self._original(mode, file, argv, *(() if env is None else (env,)))
        finally:
            within.reset(token)
            self._wrote = {} if output is None else output.end()

    def observe(self, crossing: Crossing, result: int) -> int:
        if self._waits:
            crossing.returned(result, **facts_of(result), **self._wrote)
        else:
            self.flight.started(result)
        return result

    def serve(self, crossing: Crossing) -> int:
        self.begin(crossing)
        taped = self.taped_start(crossing)
        if not self._waits:
            return self.stand_in(taped, {}, {})
        crossing.reach(END)
        output_files.print_again(taped.pieces)
        code = int(taped.value)
        crossing.returned(code, **facts_of(code))
        return code

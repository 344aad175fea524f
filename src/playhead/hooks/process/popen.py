"""Record and replay processes started through `subprocess`: `run`, `check_output`, `getoutput`, `os.popen`, and those
that asyncio, anyio and trio start. Knows `Popen`; other modules hook the other ways to start a process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from types import ModuleType
from typing import TYPE_CHECKING, Any

from playhead.errors import Divergence
from playhead.hooks.guest import NotAsExpected, Patches, need
from playhead.hooks.process import children
from playhead.hooks.process import request as process_request
from playhead.hooks.process.flight import (
    Flight,
    ProcessAdapter,
    given_crossing,
    leave_all,
    read_by_loop,
    within,
)
from playhead.hooks.process.output_files import expect_file, expect_inherited
from playhead.hooks.process.pipes import expect, tap
from playhead.hooks.process.request import DEVNULL, PIPE, STDOUT
from playhead.host.later import Later
from playhead.recording import ambient, deck, lanes, order_slot
from playhead.recording.deck import Call, Crossing

if TYPE_CHECKING:
    from playhead.hooks.process import player as process_player
    from playhead.hooks.process import script as process_script
else:
    # Only a replay needs these: see `playhead.host.later`.
    process_player = Later("playhead.hooks.process.player")
    process_script = Later("playhead.hooks.process.script")

_POSITIONAL = (
    *("args", "bufsize", "executable", "stdin", "stdout", "stderr", "preexec_fn", "close_fds"),
    *("shell", "cwd", "env", "universal_newlines", "startupinfo", "creationflags"),
    *("restore_signals", "start_new_session", "pass_fds"),
)
# The options that a stand-in takes from the taped process. It must not have the others, such as `preexec_fn`
# and `cwd`.
_OF_A_STAND_IN = (
    *("bufsize", "stdin", "stdout", "stderr", "universal_newlines", "text", "encoding", "errors"),
    *("start_new_session", "process_group", "pipesize", "restore_signals"),
)
_STREAMS = ("stdin", "stdout", "stderr")

# The input that `run(input=…)` is about to send: known before the process starts, so that it can be matched.
_input: ContextVar[Any] = ContextVar("playhead_process_input", default=None)


def hook(module: ModuleType, patches: Patches) -> None:
    if os.name != "posix":
        raise NotAsExpected("processes are recorded on POSIX systems only")
    need(module, "Popen", "run", "call", "PIPE", "STDOUT", "DEVNULL", "_cleanup")
    need(module.Popen, "_get_handles", "_handle_exitstatus", "_get_devnull", "poll", "wait")
    need(module.Popen, "__del__")
    if (module.PIPE, module.STDOUT, module.DEVNULL) != (PIPE, STDOUT, DEVNULL):
        raise NotAsExpected("subprocess has other values for PIPE, STDOUT and DEVNULL")
    code = getattr(module.Popen.__init__, "__code__", None)
    if code is not None and code.co_argcount > 1 and code.co_varnames[1:18] != _POSITIONAL:
        raise NotAsExpected("Popen takes other arguments")
    patches.replace(module, "run", _run)
    patches.replace(module.Popen, "__init__", _init)
    patches.replace(module.Popen, "_get_handles", _get_handles)
    patches.replace(module.Popen, "_handle_exitstatus", _handle_exitstatus)
    patches.replace(module.Popen, "poll", _poll)
    patches.replace(module.Popen, "wait", _wait)
    patches.replace(module.Popen, "__del__", lambda original: _finalizer(original, module._cleanup))
    patches.on_undo(leave_all)


def _run(original: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        if deck.active() is None:
            return original(*args, **kwargs)
        token = _input.set(kwargs.get("input"))
        try:
            return original(*args, **kwargs)
        finally:
            _input.reset(token)

    return run


def _init(original: Callable[..., None]) -> Callable[..., None]:
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        open_deck = deck.active()
        asked = dict(zip(_POSITIONAL, args, strict=False))
        # If the arguments do not fit, the original raises the error.
        if (
            open_deck is None
            or within.get()
            or len(args) > len(_POSITIONAL)
            or not asked.keys().isdisjoint(kwargs)
            or not ("args" in asked or "args" in kwargs)
        ):
            return original(self, *args, **kwargs)
        asked.update(kwargs)
        if not isinstance(asked["args"], (str, bytes, os.PathLike, list, tuple)):
            asked["args"] = list(asked["args"])  # as `Popen` does; an iterator can be read but once
        adapter = _Start(original, self, asked)
        given = given_crossing.get()
        if given is not None:
            return adapter.serve(given) if given.taped is not None else adapter.live(given)
        call = open_deck.describe(lambda: describe(asked), "a command line", "process")
        if call is None:
            # `Popen` will refuse these arguments with its own error.
            call = Call(boundary="process", name="?", request={"argv": None, "stdin": None})
        open_deck.perform(call, adapter)
        return None

    return init


def describe(asked: Mapping[str, Any]) -> Call:
    words, shell = _words(asked), None
    if asked.get("shell"):
        shell, words = words[0] if words else "", words[1:]
    data = _input.get()
    stdin = process_request.kind_of(asked.get("stdin"))
    return process_request.call_of(
        via="subprocess",
        argv=words,
        shell=shell,
        executable=asked.get("executable"),
        cwd=asked.get("cwd"),
        env=asked.get("env"),
        stdin=stdin if data is None or stdin != "pipe" else process_request.known_input(data),
        stdout=process_request.kind_of(asked.get("stdout")),
        stderr=process_request.kind_of(asked.get("stderr")),
    )


def _words(asked: Mapping[str, Any]) -> list[str]:
    args = asked["args"]
    if isinstance(args, (str, bytes, os.PathLike)):
        args = [args]
    return [process_request.text_of(word) for word in args]


class _Start(ProcessAdapter):
    """One `Popen`."""

    def __init__(self, original: Callable[..., None], popen: Any, asked: dict[str, Any]) -> None:
        self._original = original
        self._popen = popen
        self._asked = asked

    def live(self, crossing: Crossing) -> None:
        asked, flight = self._asked, self.begin(crossing, sent=_has_input(crossing))
        changed = _carried(asked, crossing)
        _prepare_files(asked, flight)
        expect_inherited(
            flight, crossing, *(process_request.kind_of(asked.get(name)) for name in _STREAMS[1:])
        )
        token = within.set("popen")
        try:
            self._original(self._popen, **{**asked, **changed})
        finally:
            within.reset(token)
        self._started()

    def serve(self, crossing: Crossing) -> None:
        popen, flight = self._popen, self.begin(crossing, sent=_has_input(crossing))
        if any(
            process_request.kind_of(self._asked.get(one)) == "inherited" for one in _STREAMS[1:]
        ):
            lanes.start_writer()
        taped = self.taped_start(crossing)
        flight.player = player = process_player.Player(
            process_script.script_of(taped, sent=flight.sent),
            flight,
            is_fed=read_by_loop.get() and order_slot.active() is not None,
        )
        # Seen by `_get_handles` below, which gives the child's ends of the streams to the player.
        popen._playhead_flight = flight
        stand_in = {name: self._asked[name] for name in _OF_A_STAND_IN if name in self._asked}
        token = within.set("popen")
        try:
            self._original(popen, [player.stand_in.path], env={}, **stand_in)
        except BaseException:
            player.stop()
            raise
        finally:
            within.reset(token)
        self._started()
        player.go()
        took_ns = taped.facts.get("started_ns")
        if type(took_ns) is int:
            lanes.current.get().reach(taped.began_ns + took_ns)

    def _started(self) -> None:
        self._popen.args = self._asked["args"]
        _attach(self._popen, self._asked, self.flight)


def _has_input(crossing: Crossing) -> bool:
    """Return whether the request has the whole stdin."""
    request = crossing.call.request
    return type(request) is dict and type(request["stdin"]) is dict


def _carried(asked: Mapping[str, Any], crossing: Crossing) -> dict[str, Any]:
    """Return the changed arguments with which a Python child joins the run."""
    try:
        words = _words(asked)
    except Exception:  # noqa: BLE001  fails open: `Popen` will say what is wrong with them
        return {}
    if asked.get("shell"):
        _, env = children.carry(["/bin/sh", "-c", *words], asked.get("env"), crossing)
        return {} if env is None else {"env": getattr(env, "encoded", env)}
    executable = asked.get("executable")
    program = words if executable is None else [process_request.text_of(executable), *words[1:]]
    argv, env = children.carry(program, asked.get("env"), crossing)
    # `Popen` encodes the variables of a child, unless they are encoded.
    changed: dict[str, Any] = {} if env is None else {"env": getattr(env, "encoded", env)}
    if argv != program:
        changed["args"] = argv if executable is None else [*words[:1], *argv[1:]]
        if executable is not None:
            changed["executable"] = argv[0]
    return changed


def _prepare_files(asked: Mapping[str, Any], flight: Flight) -> None:
    """Note, before the child writes, where its output will begin in files of the program."""
    for stream in ("stdout", "stderr"):
        fd = process_request.fd_of(asked.get(stream))
        if fd is not None and fd > 2:
            expect_file(fd, flight, stream)


def _attach(popen: Any, asked: Mapping[str, Any], flight: Flight) -> None:
    popen._playhead_flight = flight
    flight.started(popen.pid)
    size = asked.get("bufsize", -1)
    for stream in _STREAMS:
        file = getattr(popen, stream)
        if file is not None:
            setattr(popen, stream, tap(file, flight, stream, size))
            continue
        fd = process_request.fd_of(asked.get(stream))
        if fd is not None and fd > 2:
            expect(fd, flight, stream)


def _get_handles(original: Callable[..., tuple[int, ...]]) -> Callable[..., tuple[int, ...]]:
    """Give the child's ends of the streams to the player, and the player's control pipe to the stand-in.

    `Popen` makes its pipes in this private method, and gives the ends to the child right after it: they cannot be
    exchanged later.
    """

    def _get_handles(self: Any, *args: Any, **kwargs: Any) -> tuple[int, ...]:
        handles = original(self, *args, **kwargs)
        flight: Flight | None = getattr(self, "_playhead_flight", None)
        if flight is None or flight.player is None:
            return handles
        to_stdin, stdin, stdout, to_stdout, stderr, to_stderr = handles
        player, null = flight.player, self._get_devnull()
        for stream, theirs, ours in (
            ("stdin", to_stdin, stdin),
            ("stdout", to_stdout, stdout),
            ("stderr", to_stderr, stderr),
        ):
            if theirs == null or (stream == "stderr" and theirs == to_stdout != -1):
                continue
            if ours != -1:
                player.take(stream, theirs, alone=True)
            elif theirs != -1:
                player.take(stream, os.dup(theirs))
            elif player.wants(stream):
                player.take(stream, os.dup(_STREAMS.index(stream)))
        # `Popen` closes the child's end of a pipe that it has made.
        line = player.ready()
        return (os.dup(line) if stdin != -1 else line, stdin, stdout, null, stderr, null)

    return _get_handles


def _handle_exitstatus(original: Callable[..., Any]) -> Callable[..., Any]:
    def _handle_exitstatus(self: Any, *args: Any, **kwargs: Any) -> Any:
        answer = original(self, *args, **kwargs)
        flight: Flight | None = getattr(self, "_playhead_flight", None)
        if flight is not None and self.returncode is not None:
            flight.exited(self.returncode)
        return answer

    return _handle_exitstatus


def _poll(original: Callable[..., int | None]) -> Callable[..., int | None]:
    def poll(self: Any) -> int | None:
        flight: Flight | None = getattr(self, "_playhead_flight", None)
        if flight is None or self.returncode is not None:
            return original(self)
        self._playhead_polls = number = getattr(self, "_playhead_polls", 0) + 1
        # The tape has the number of the poll that found the exit, so that the same one finds it in a replay. 0: none
        # did, the program waited.
        flight.add_facts({"found_by_poll": number})
        flight.look(number)
        code = original(self)
        if code is None:
            flight.add_facts({"found_by_poll": 0})
            flight.is_alive()
        return code

    return poll


def _wait(original: Callable[..., int]) -> Callable[..., int]:
    def wait(self: Any, timeout: float | None = None) -> int:
        try:
            return waited(self, timeout)
        except Exception as error:
            # The error has the timeout that was left when the wait began, measured by a clock that is not taped. A
            # program may show it to its model, so a replay must produce the same text.
            if type(error).__name__ == "TimeoutExpired" and hasattr(self, "_playhead_flight"):
                left = getattr(error, "timeout", None)
                error.timeout = ambient.read("timeout", lambda: left)  # type: ignore[attr-defined]
            raise

    def waited(self: Any, timeout: float | None) -> int:
        flight: Flight | None = getattr(self, "_playhead_flight", None)
        if flight is None or flight.player is None:
            return original(self, timeout)
        try:
            if self.returncode is None:
                flight.check(waits=timeout is None)
        except Divergence:
            original(self)  # the stand-in ends with the divergence and has to be reaped
            raise
        code = original(self, timeout)
        flight.check()
        return code

    return wait


def _finalizer(original: Callable[..., None], reap: Callable[[], None]) -> Callable[..., None]:
    def finalize(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        flight: Flight | None = getattr(self, "_playhead_flight", None)
        if flight is not None and self.returncode is None:
            flight.dropped(reap)

    return finalize

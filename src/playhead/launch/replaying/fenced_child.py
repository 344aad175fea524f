"""Run a function in a forked child that the kernel keeps from the network and the files. Knows forks, pipes and
the fence; does not know what the function does.

For replays inside a test. The child has a copy of the whole program, so the function needs no preparation, but
what it changes in memory and in files is lost. Only its result comes back, as JSON: code that ran on a tape from
somewhere else must not be able to make this process build objects of its choice.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NoReturn, TypeVar

from playhead.encoding.values import freeze, safe_str, thaw
from playhead.errors import NoFence
from playhead.replay.fence.inside import FenceNeeds, enter_namespaces
from playhead.replay.matching.taped_errors import TapedError, rebuild

T = TypeVar("T")
_RETURNED, _RAISED, _NO_FENCE = b"r", b"e", b"n"
_NAMES_A_CLASS = frozenset({"$attrs", "$dataclass", "$enum", "$namedtuple", "$pydantic", "$struct"})
_SCRATCH = ("/tmp", "/var/tmp")  # noqa: S108  covered, not used


class FencedChildDied(NoFence):
    """The function ran inside the fence, but its process ended without a result: a crash, or `os._exit`."""


def in_fenced_child(function: Callable[[], T], *, keep: Sequence[str]) -> T:
    """Run the function in a fenced child and return its result; the folders of `keep` stay real in it.

    Raises:
        NoFence: Why that is not possible. The function was not run, or its result cannot be passed on.
        FencedChildDied: The function was run, and its process ended without a result.
    """
    if why := why_not():
        raise NoFence(why)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()  # otherwise the child would write the same text again
    answer, result = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(answer)
        _be_child(function, keep, result)
    os.close(result)
    try:
        with open(answer, "rb") as pipe:
            kind, text = pipe.read(1), pipe.read()
    except BaseException:  # an interrupt: the child must not outlive the call
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    _, status = os.waitpid(pid, 0)
    if kind == _NO_FENCE:
        raise NoFence(text.decode())
    if not kind:
        ending = os.waitstatus_to_exitcode(status)
        raise FencedChildDied(f"the fenced child ended without a result (exit code {ending})")
    frozen = json.loads(text)
    if kind == _RAISED:
        raise rebuild(frozen) or TapedError("", "the fenced child failed")
    return thaw(frozen, _loaded_classes(frozen))  # type: ignore[no-any-return]


def why_not() -> str | None:
    """Return why this process cannot have a fenced child, as far as it is known before the attempt."""
    if sys.platform != "linux":
        return f"{sys.platform} has no fence that Playhead knows"
    others = [one.name for one in threading.enumerate() if one is not threading.current_thread()]
    # A forked child has only one thread: code that waits for another thread would wait forever.
    return f"this process has other threads ({', '.join(others[:3])})" if others else None


def _be_child(function: Callable[[], T], keep: Sequence[str], result: int) -> NoReturn:
    """Run the function, send its result, and exit without returning: exit handlers of the test's process must not
    run twice.
    """
    try:
        usual = (os.getcwd(), os.environ.get("HOME"), os.environ.get("TMPDIR"), *_SCRATCH)
        own = tuple(one for one in usual if one and os.path.isdir(one))
        enter_namespaces(FenceNeeds(own=own), keep)
    except BaseException as error:  # noqa: BLE001  after any error the parent runs the function itself
        _send(result, _NO_FENCE, safe_str(error).encode())
    try:
        value = function()
    except BaseException as error:  # noqa: BLE001  also the exceptions that end a test
        _send(result, _RAISED, json.dumps(freeze(error)).encode())
    frozen = freeze(value)
    if not _can_be_rebuilt(frozen):
        _send(result, _NO_FENCE, b"the result cannot be passed on to this process")
    _send(result, _RETURNED, json.dumps(frozen).encode())


def _can_be_rebuilt(frozen: Any) -> bool:
    """Return whether the value survives the transport. Values without a codec, cycles, and objects of classes that a
    function created do not.
    """
    try:
        return bool(freeze(thaw(frozen, _loaded_classes(frozen))) == frozen)
    except Exception:  # noqa: BLE001  any class may fail in its own way
        return False


def _loaded_classes(frozen: Any) -> dict[str, type]:
    """Return the classes that a frozen value names, from modules that this program has imported. Imports nothing."""
    if isinstance(frozen, list):
        return {name: kind for item in frozen for name, kind in _loaded_classes(item).items()}
    if not isinstance(frozen, dict):
        return {}
    found: dict[str, type] = {}
    for key, item in frozen.items():
        if key in _NAMES_A_CLASS and isinstance(item, str) and (kind := _loaded(item)) is not None:
            found[item] = kind
        found.update(_loaded_classes(item))
    return found


def _loaded(name: str) -> type | None:
    """The class of a name such as `module:Outer.Inner`."""
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = vars(found).get(part) if hasattr(found, "__dict__") else None
    return found if isinstance(found, type) else None


def _send(result: int, kind: bytes, text: bytes) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    with suppress(OSError), open(result, "wb") as out:
        out.write(kind + text)
    os._exit(0)

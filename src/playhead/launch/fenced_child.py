"""Run a function in a forked child that the kernel keeps from the network and the files. Knows forks, pipes and
the fence; does not know what the function does.

For replays inside a test. The child has a copy of the whole program, so the function needs no preparation, but
what it changes in memory and in files is lost; only its result comes back.
"""

from __future__ import annotations

import os
import pickle  # noqa: TID251  from our own fork, over a pipe; not from a tape
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NoReturn, TypeVar

from playhead.encoding.values import safe_str
from playhead.errors import NoFence
from playhead.replay.fence.inside import FenceNeeds, enter_namespaces

T = TypeVar("T")
_RETURNED, _RAISED, _NO_FENCE = b"r", b"e", b"n"
_SCRATCH = ("/tmp", "/var/tmp")  # noqa: S108  covered, not used


def in_fenced_child(function: Callable[[], T], *, keep: Sequence[str]) -> T:
    """The result of the function, run in a fenced child; the folders of `keep` stay real in it.

    NoFence says why that is not possible: then the function was not run, or its result cannot be passed on.
    """
    if why := _why_not():
        raise NoFence(why)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()  # or the child would write it a second time
    answer, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(answer)
        _be_child(function, keep, told)
    os.close(told)
    with open(answer, "rb") as lines:
        kind, said = lines.read(1), lines.read()
    _, status = os.waitpid(pid, 0)
    if kind == _NO_FENCE:
        raise NoFence(said.decode())
    if not kind:
        ending = os.waitstatus_to_exitcode(status)
        raise NoFence(f"the fenced child ended without a result (exit code {ending})")
    result = pickle.loads(said)  # noqa: S301  our own child wrote it
    if kind == _RAISED:
        raise result
    return result  # type: ignore[no-any-return]


def _why_not() -> str | None:
    if sys.platform != "linux":
        return f"{sys.platform} has no fence that Playhead knows"
    others = [one.name for one in threading.enumerate() if one is not threading.current_thread()]
    # A forked child has one thread: whatever waits for another one waits for ever.
    return f"this process has other threads ({', '.join(others[:3])})" if others else None


def _be_child(function: Callable[[], T], keep: Sequence[str], told: int) -> NoReturn:
    """Returns only by ending: handlers of the test's own process must not run twice."""
    try:
        usual = (os.getcwd(), os.environ.get("HOME"), os.environ.get("TMPDIR"), *_SCRATCH)
        own = tuple(one for one in usual if one and os.path.isdir(one))
        enter_namespaces(FenceNeeds(own=own), keep)
    except BaseException as error:  # noqa: BLE001  whatever it is, the parent runs the function itself
        _tell(told, _NO_FENCE, safe_str(error).encode())
    try:
        value = function()
    except BaseException as error:  # noqa: BLE001  also those by which a test ends itself
        kind, result = _RAISED, _packed(error)
    else:
        kind, result = _RETURNED, _packed(value)
    if not result:
        _tell(told, _NO_FENCE, b"the result cannot be passed on to this process")
    _tell(told, kind, result)


def _packed(value: object) -> bytes:
    """Empty: the value cannot be rebuilt. Some can be written and not read."""
    try:
        made = pickle.dumps(value)
        pickle.loads(made)  # noqa: S301  our own
    except Exception:  # noqa: BLE001  any class may fail in its own way
        return b""
    return made


def _tell(told: int, kind: bytes, said: bytes) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    with suppress(OSError), open(told, "wb") as out:
        out.write(kind + said)
    os._exit(0)

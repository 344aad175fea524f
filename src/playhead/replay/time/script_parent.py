"""Tell whether the shell script that started this process of a replay may still end it, or send it a signal.

A script starts a server in the background, runs its clients, and sends the server a signal by the shell's own `kill`.
In a replay the server comes to the end of its tape before its clients do, because they load libraries first. So it
waits for the real signal as long as the script can send one: until the shell does nothing but wait for this process.
Knows `/proc`; not the tape.
"""

from __future__ import annotations

import os
import posix
from contextlib import suppress

from playhead import clock
from playhead.recording import deck

_SHELLS = frozenset({"ash", "bash", "busybox", "dash", "fish", "ksh", "mksh", "sh", "zsh"})
# A shell that only waits for this process for as long as this does not send a signal.
_PATIENCE_NS = 1_000_000_000
_LONGEST_WAIT_NS = 120_000_000_000

_is_child_of_shell: tuple[int, bool] = (0, False)
# Since when this process waits, and since when the shell has nothing else to do.
_waits_since = 0
_idle_since = 0


def is_shell() -> bool:
    """Return whether a shell is the parent of this process."""
    global _is_child_of_shell  # noqa: PLW0603  one parent a process
    parent = os.getppid()
    if _is_child_of_shell[0] != parent:
        name = ""
        with suppress(OSError):
            name = os.path.basename(posix.readlink(f"/proc/{parent}/exe"))
        _is_child_of_shell = (parent, name in _SHELLS)
    return _is_child_of_shell[1]


def may_signal() -> bool:
    """Return whether the shell may still send a signal to this process, which does nothing until then."""
    global _waits_since, _idle_since  # noqa: PLW0603  one parent a process
    if not is_shell():
        return False
    now = clock.mono_ns()
    if not _waits_since:
        _waits_since = now
        _mark()
    if now - _waits_since > _LONGEST_WAIT_NS:
        return False
    if _is_working(os.getppid()):
        _idle_since = 0
        return True
    _idle_since = _idle_since or now
    return now - _idle_since < _PATIENCE_NS


def go_on() -> None:
    """Note that this process waits no more."""
    global _waits_since, _idle_since  # noqa: PLW0603  one parent a process
    if _waits_since:
        _waits_since = _idle_since = 0
        if (path := _path(os.getpid())) is not None:
            with suppress(OSError):
                posix.unlink(path)


def _is_working(shell: int) -> bool:
    """Return whether the shell computes, or has a child that does not wait for the shell itself, as this one does."""
    if _state(shell) not in (b"S", b"T", b"Z"):
        return True
    children = b""
    with suppress(OSError), open(f"/proc/{shell}/task/{shell}/children", "rb") as listed:
        children = listed.read()
    for pid in map(int, children.split()):
        path = _path(pid)
        if pid == os.getpid() or (path is not None and os.path.exists(path)):
            continue
        if _state(pid) not in (b"Z", b"X", b""):
            return True
    return False


def _state(pid: int) -> bytes:
    """Return the letter of a process's state; nothing if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b") ")[2][:1]
    except OSError:
        return b""


def _mark() -> None:
    """Tell other processes of the script that this one waits: two that wait for each other would never end."""
    if (path := _path(os.getpid())) is not None:
        with suppress(OSError), open(path, "wb"):
            pass


def _path(pid: int) -> str | None:
    open_deck = deck.active()
    folder = None if open_deck is None else open_deck.recorder.folder
    return None if folder is None else f"{folder}/.waits-{pid}"

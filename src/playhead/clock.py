"""The only access to real time, entropy, ids and process identity.

Keeps the unpatched originals: a replay gives the agent taped time and entropy, while the recorder still needs
the real ones. Does not know runs or tapes.
"""

from __future__ import annotations

import _thread
import gc
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

wall_ns = time.time_ns
mono_ns = time.monotonic_ns
cpu_ns = time.process_time_ns
thread_cpu_ns = time.thread_time_ns
sleep = time.sleep
urandom = os.urandom
pid = os.getpid
thread_id = _thread.get_ident
# The unhooked C methods of locks: a replay hooks these methods for the program.
_take, _give = _thread.RLock.acquire, _thread.RLock.release
_frames_guard = _thread.RLock()
_utc = time.gmtime
_shown = time.strftime
_cpu_clock = time.pthread_getcpuclockid
_read_clock = time.clock_gettime_ns

# Crockford's letters: no i, l, o, u, so that an id can be read aloud and typed by hand without errors.
_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"


def new_run_id(at_wall_ns: int) -> str:
    """Return an id that sorts by time and that people can type: `20261115-071105-k3f9`."""
    when = _shown("%Y%m%d-%H%M%S", _utc(at_wall_ns // 1_000_000_000))
    tail = "".join(_LETTERS[byte % 32] for byte in urandom(4))
    return f"{when}-{tail}"


def iso(at_wall_ns: int) -> str:
    """Return UTC with microseconds: the form in which manifests and reports show a moment."""
    seconds, rest = divmod(at_wall_ns, 1_000_000_000)
    when = _shown("%Y-%m-%dT%H:%M:%S", _utc(seconds))
    return f"{when}.{rest // 1000:06d}Z"


def stamp(at_wall_ns: int) -> str:
    """Return the suffix of a file that is moved aside: `20261115T071105`."""
    return _shown("%Y%m%dT%H%M%S", _utc(at_wall_ns // 1_000_000_000))


def host() -> str:
    return os.uname().nodename


def frames() -> dict[int, FrameType]:
    """Return the current frame of each thread. The garbage collector is off meanwhile: before 3.11.8 and 3.12.2 Python
    holds a lock of its own while it makes the frames. A finalizer that runs then can let another thread come here,
    which waits for that lock and keeps the interpreter: a deadlock (CPython issue 106883).
    """
    _take(_frames_guard)
    try:
        is_enabled = gc.isenabled()
        gc.disable()
        try:
            return sys._current_frames()
        finally:
            if is_enabled:
                gc.enable()
    finally:
        _give(_frames_guard)


def cpu_of_thread_ns(ident: int) -> int:
    """Return the processor time that this thread of the process has used."""
    return _read_clock(_cpu_clock(ident))


def threads() -> int:
    """Return the number of threads that the system counts in this process, Python's or not; 0: it does not say."""
    try:
        # A folder has a link for itself, one for its parent, and one for each folder in it.
        return os.stat("/proc/self/task").st_nlink - 2
    except OSError:
        return 0


def process_birth(process_id: int) -> str | None:
    """Return a token that distinguishes this process from a later one with the same pid; None: it has exited.

    Field 22 of /proc/PID/stat is the start time in clock ticks since boot. Without /proc (macOS) the token is empty,
    and only the pid counts.
    """
    try:
        with open(f"/proc/{process_id}/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
    except OSError:
        return None if sys.platform == "linux" else _signalled(process_id)
    # Z and X: the process is dead and not yet reaped. It will never write anything again.
    return None if fields[0] in (b"Z", b"X") else fields[19].decode()


def _signalled(process_id: int) -> str | None:
    try:
        os.kill(process_id, 0)
    except PermissionError:
        return ""
    except OSError:
        return None
    return ""


def _renew_guard() -> None:
    """Renew the lock in a forked child: the thread that held it does not exist there."""
    global _frames_guard  # noqa: PLW0603  one guard a process
    _frames_guard = _thread.RLock()


os.register_at_fork(after_in_child=_renew_guard)

"""Run a command as a shell would, and return how it ended. Knows spawning, signals and job control; does not
know what is recorded.

The command is in our process group and has our terminal, stdin and descriptors. Signals from the terminal
reach it directly; signals that were sent to us alone are passed on.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, NoReturn

from playhead.host.stderr import say
from playhead.launch.sidecar.command_streams import STDIN, Stream
from playhead.launch.sidecar.control import Sidecar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from playhead.launch.sidecar.connection_watch import SeenConnection
    from playhead.launch.sidecar.process_tree import LeftProcess
    from playhead.replay.fence.barrier import Fence

PASSED_ON = frozenset(
    {
        signal.SIGHUP,
        signal.SIGINT,
        signal.SIGQUIT,
        signal.SIGTERM,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGTSTP,
        signal.SIGCONT,
    }
)
_AWAITED = PASSED_ON | {signal.SIGCHLD}
# Python ignores these two for itself; a child would inherit that.
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


class Ended(NamedTuple):
    """How the command ended. `code` is as in `subprocess`: negative for a signal."""

    code: int
    # Why it could not be started.
    error: str | None = None
    # The id of its process.
    pid: int | None = None

    @property
    def exit_code(self) -> int:
        """The exit code that a shell would return."""
        return self.code if self.code >= 0 else 128 - self.code


class Attended(NamedTuple):
    """A command that has ended, with the reports of the processes beside it."""

    ended: Ended
    # Segments that are not the command's: those of the launcher and its sidecars.
    own: frozenset[str]
    # Connections of the whole tree; None: they were not watched.
    connections: Sequence[SeenConnection] | None = None
    # Whether they were watched for a part of the run only.
    is_watch_lost: bool = False
    # Ports of the HTTP proxies that the command was given.
    known_ports: Collection[int] = ()
    # Programs that were not followed, and why.
    unfollowed: Sequence[tuple[str, str]] = ()
    # Processes that the command left behind.
    left: Sequence[LeftProcess] = ()


def block_signals() -> set[int]:
    """Block signals until they are waited for. Returns the previous mask, which is the command's."""
    # If SIGCHLD is ignored, an ended child is reaped before its exit status can be read.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    return set(signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED))


def spawn(
    argv: Sequence[str],
    env: Mapping[str, str],
    streams: Sequence[Stream],
    mask: set[int],
    fence: Fence | None = None,
    *,
    stdin: int | None = None,
) -> int | Ended:
    """Start the command, inside the fence if there is one. Return its pid, or how it failed to start (127: not
    found, 126: found, but not executable). `stdin`: an open file for its stdin.
    """
    handles = [(one.entry, one.fds) for one in streams]
    if stdin is not None:
        handles.append((stdin, (0,)))
    try:
        if fence is not None:
            return fence.start(argv, env, handles, mask, watch=fence.is_watched)
        return _spawned(argv, env, handles, mask)
    except OSError as error:
        missing = error.errno in (errno.ENOENT, errno.ENOTDIR)
        message = f"{argv[0]}: {error.strerror}"
        return Ended(code=127 if missing else 126, error=message)
    finally:
        for stream in streams:
            # Close our copy: the sidecar's read must end when the last process of the command has closed the pipe.
            os.close(stream.entry)
            os.close(stream.source)
            if stream.name == STDIN:
                os.close(stream.sink)  # the command's read must end when the sidecar has closed it
        if stdin is not None:
            os.close(stdin)


def _spawned(
    argv: Sequence[str],
    env: Mapping[str, str],
    handles: Sequence[tuple[int, Sequence[int]]],
    mask: set[int],
) -> int:
    actions = [(os.POSIX_SPAWN_DUP2, entry, fd) for entry, fds in handles for fd in fds]

    def start(words: list[str]) -> int:
        return os.posix_spawnp(
            words[0],
            words,
            env,
            file_actions=actions,
            setsigmask=mask,
            setsigdef=_IGNORED_BY_PYTHON,
        )

    try:
        return start(list(argv))
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        return start(["/bin/sh", *argv])  # a script without #!: shells run it this way


def wait(pid: int, sidecar: Sidecar) -> Ended:
    """Pass signals on to the command, stop when it stops, and return when it has ended."""
    # Signals to the whole group that the sidecar has reported and that are still pending here.
    witnessed: set[int] = set()
    while True:
        # sigwait, not handlers: a handler would run between any two lines of other code.
        got = signal.sigwait(_AWAITED)
        if got == signal.SIGCHLD:
            ended = _looked_after(pid)
            if ended is not None:
                return ended
            continue
        witnessed |= sidecar.signals()
        if got == signal.SIGCONT:
            witnessed.discard(signal.SIGTSTP)  # the kernel has dropped it
        if got in witnessed:
            witnessed.discard(got)
        else:
            os.kill(pid, got)


def _looked_after(pid: int) -> Ended | None:
    """The state of the command; None: it is still running."""
    while True:
        found, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
        if found == 0:
            return None
        if not os.WIFSTOPPED(status):
            return Ended(code=os.waitstatus_to_exitcode(status))
        _stop_too(os.WSTOPSIG(status))


def _stop_too(number: int) -> None:
    """Stop with the same signal, so that the shell sees a stopped job. Continue when the shell sends SIGCONT."""
    # Sent while it is blocked: if Ctrl-Z has left the same signal pending, the two become one.
    os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    signal.pthread_sigmask(signal.SIG_BLOCK, {number} & _AWAITED)


def become(command: list[str]) -> NoReturn:
    """Exec the command: without a recording nothing needs to run beside it."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # noqa: S606  as S603: argv is the caller's own
    except OSError as error:
        say(f"cannot run {command[0]}: {error.strerror}.")
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)

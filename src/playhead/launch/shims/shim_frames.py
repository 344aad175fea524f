"""The messages between a shim and the sidecar: a letter, a length, bytes. Pure; does not know the socket.

C  a shim's call            R  run it for real: the call's name, a lane for its children, variables
A  become the program, a part of the agent: its words, variables
I O E  stdin, stdout, …     P  be played: with the descriptor that says how to end
M  a mark: `closed stdin`   F  not run: an exit code, and why
S  a signal from the caller D  that signal is not on the tape: die of it
X  the exit                 K  the exit is on the tape
Q  the run has ended        W  write a file that the taped program wrote: its path and content
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from playhead.host.descriptors import frame

# The exit code of `env` and `unshare` when the command was never run.
REFUSED = 125
STREAMS = {b"I": "stdin", b"O": "stdout", b"E": "stderr"}


class ShimCall(NamedTuple):
    """The call of a shim: its arguments and its caller."""

    pid: int
    # The process that started it.
    ppid: int
    # `path`: the shim was found on PATH. Otherwise the program was executed and the tracer put the shim in its place:
    # in a new process (`child`), or in a process that is part of the agent (`self`).
    how: str
    name: str
    # The real program; empty: there is none.
    real: str
    cwd: str
    # The run, event and lane that the environment names.
    run: str
    parent: str
    lane: str
    # The kinds of stdin, stdout and stderr: pipe, inherited, stdout, file, null, tty, device, closed.
    kinds: tuple[str, str, str]
    # Which of the three came with the call.
    passed: tuple[int, ...]
    argv: tuple[str, ...]
    env: Mapping[str, str]

    @property
    def is_fenced(self) -> bool:
        """Return whether the caller sees other mounts than this process, so that its writes do not reach real files.
        Only the tracer's shims can write files; those on PATH may be written in Python.
        """
        try:
            theirs = os.stat(f"/proc/{self.pid}/ns/mnt")
            return self.how != "path" and not os.path.samestat(theirs, os.stat("/proc/self/ns/mnt"))
        except OSError:
            return False


def read_call(payload: bytes) -> ShimCall:
    """Parse a call. ValueError: the bytes are not a call."""
    fields = [os.fsdecode(one) for one in payload.split(b"\0")][:-1]
    pid, ppid, how, name, real, cwd, run, parent, lane, *rest = fields
    stdin, stdout, stderr, passed, argc, *rest = rest
    count = int(argc)
    env = (entry.partition("=") for entry in rest[count:])
    return ShimCall(
        pid=int(pid),
        ppid=int(ppid),
        how=how,
        name=name,
        real=real,
        cwd=cwd,
        run=run,
        parent=parent,
        lane=lane,
        kinds=(stdin, stdout, stderr),
        passed=tuple(map(int, passed)),
        argv=tuple(rest[:count]),
        env={name: value for name, _, value in env},
    )


def call_frame(asked: ShimCall) -> bytes:
    """Encode a call, as the fallback sends it."""
    words = [str(asked.pid), str(asked.ppid), asked.how, asked.name, asked.real, asked.cwd]
    words += [asked.run, asked.parent, asked.lane]
    words += [*asked.kinds, "".join(map(str, asked.passed)), str(len(asked.argv)), *asked.argv]
    return frame(b"C", _packed([*words, *_entries(asked.env)]))


def refusal(why: str, code: int = REFUSED) -> bytes:
    return frame(b"F", f"{code}\0{why}".encode())


def run_frame(ref: str, lane: str, changes: Mapping[str, str] | None = None) -> bytes:
    """`changes` are variables to set for the program."""
    return frame(b"R", _packed([ref, lane, *_entries(changes or {})]))


def agent_frame(argv: Sequence[str], changes: Mapping[str, str]) -> bytes:
    return frame(b"A", _packed([str(len(argv)), *argv, *_entries(changes)]))


def write_frame(path: str, content: bytes) -> bytes:
    return frame(b"W", os.fsencode(path) + b"\0" + content)


def _entries(variables: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in variables.items()]


def _packed(words: Sequence[str]) -> bytes:
    return b"".join(os.fsencode(word) + b"\0" for word in words)

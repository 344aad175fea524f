"""Provide the program that runs in place of a taped process: it reads from stdin how to end, and ends that way.

There are two such programs. `/bin/sh` exists everywhere, and takes as long to start as `true`: most of that time the
loader looks for the C library. Where the system allows it, the stand-in is a program of two hundred bytes without a
library, in an anonymous file, which starts in a quarter of the time. Knows the input of both programs; does not know
what is played.
"""

from __future__ import annotations

import fcntl
import os
import posix
import signal
import struct
import sys
from contextlib import suppress
from typing import NamedTuple

from playhead import clock
from playhead.hooks.process.flight import within

SHELL = "/bin/sh"

# For Linux on x86-64: two bytes are read, a signal and an exit code.
_CODE = b"".join(
    (
        b"\x31\xff",  # xor edi, edi          read(0, on the stack, 2)
        b"\x48\x89\xe6",  # mov rsi, rsp
        b"\x6a\x02",  # push 2
        b"\x5a",  # pop rdx
        b"\x31\xc0",  # xor eax, eax
        b"\x0f\x05",  # syscall
        b"\x31\xdb",  # xor ebx, ebx          nothing came: the end, with 0
        b"\x83\xf8\x02",  # cmp eax, 2
        b"\x75\x31",  # jne leave
        b"\x0f\xb6\x5e\x01",  # movzx ebx, byte ptr [rsi+1]
        b"\x44\x0f\xb6\x26",  # movzx r12d, byte ptr [rsi]
        b"\x45\x85\xe4",  # test r12d, r12d
        b"\x74\x24",  # jz leave
        b"\x6a\x00\x6a\x00",  # push 0; push 0    setrlimit(RLIMIT_CORE, {0, 0}): it is only played
        b"\x48\x89\xe6",  # mov rsi, rsp
        b"\x6a\x04\x5f",  # push 4; pop rdi
        b"\xb8\xa0\x00\x00\x00\x0f\x05",  # mov eax, 160; syscall
        b"\xb8\x27\x00\x00\x00\x0f\x05",  # mov eax, 39; syscall     kill(getpid(), signal)
        b"\x89\xc7",  # mov edi, eax
        b"\x44\x89\xe6",  # mov esi, r12d
        b"\xb8\x3e\x00\x00\x00\x0f\x05",  # mov eax, 62; syscall
        b"\x89\xdf",  # leave: mov edi, ebx   exit_group(code)
        b"\xb8\xe7\x00\x00\x00\x0f\x05",  # mov eax, 231; syscall
    )
)
_HEADER, _SEGMENT, _BASE = 64, 56, 0x400000
# Out of the way of programs that close the low descriptors and open their own files there.
_LOWEST = 700
_CHECKED_WITH = 7


class StandIn(NamedTuple):
    """The program to start, and the language in which it reads how to end."""

    path: str
    is_shell: bool

    def end_message(self, code: int) -> bytes:
        """Return the input that makes it end with this code: an exit code, or the negative of a signal, as in
        `subprocess`.
        """
        # The second byte is the exit code if the signal does not kill it: children inherit ignored signals.
        if not self.is_shell:
            return bytes((-code & 127, (128 - code) & 255)) if code < 0 else bytes((0, code & 255))
        return f"{in_shell(code)}\n".encode()


# Also for the stand-in of a shim, which understands the same input as sh.
IN_SHELL = StandIn(SHELL, is_shell=True)


def in_shell(code: int) -> str:
    """Return the shell command that ends with this code."""
    if code >= 0:
        return f"exit {code & 255}"
    # No core file for a death that is only played.
    return f"ulimit -c 0; kill -{-code} $$; exit {128 - code}"


class _Small:
    """The small program. It is made when it is first needed, and tried once."""

    def __init__(self) -> None:
        self._fd = -1
        self._inode = 0
        self._works: bool | None = None

    def find(self) -> str | None:
        """Return the path from which it can be started; None if it cannot be used on this system."""
        if self._works is None:
            self._works = _is_its_machine() and self._make() and _runs(self._path)
        if not self._works or (not self._is_there() and not self._make()):
            return None
        return self._path

    @property
    def _path(self) -> str:
        # With our own pid: a child has closed its copy of the descriptor before it starts the program.
        return f"/proc/{clock.pid()}/fd/{self._fd}"

    def _is_there(self) -> bool:
        try:
            return os.fstat(self._fd).st_ino == self._inode
        except OSError:
            return False  # the program has closed a descriptor that it did not open

    def _make(self) -> bool:
        try:
            low = os.memfd_create("playhead-stand-in", os.MFD_CLOEXEC)
            try:
                os.write(low, _elf(_CODE))
                self._fd = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, _LOWEST)
            finally:
                os.close(low)
            self._inode = os.fstat(self._fd).st_ino
        except OSError:
            return False
        return True


def _is_its_machine() -> bool:
    # A program that handles SIGCHLD would be notified of the process that tries this out.
    return (
        sys.platform == "linux"
        and os.uname().machine == "x86_64"
        and signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL
    )


def _runs(path: str) -> bool:
    """Return whether the program runs. A system may forbid the execution of such a file, or hide it."""
    line, write_end = os.pipe()
    token = within.set("stand-in")
    try:
        os.write(write_end, StandIn(path, is_shell=False).end_message(_CHECKED_WITH))
        pid = posix.posix_spawn(path, ["sh"], {}, file_actions=[(os.POSIX_SPAWN_DUP2, line, 0)])
        return os.waitstatus_to_exitcode(posix.waitpid(pid, 0)[1]) == _CHECKED_WITH
    except OSError:
        return False
    finally:
        within.reset(token)
        os.close(line)
        os.close(write_end)


def _elf(code: bytes) -> bytes:
    """Return an ELF executable with one segment, which is the whole file."""
    start = _HEADER + _SEGMENT
    size = start + len(code)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH",
        *(b"\x7fELF\x02\x01\x01", 2, 62, 1, _BASE + start, _HEADER, 0, 0),
        *(_HEADER, _SEGMENT, 1, 0, 0, 0),
    )
    readable_and_executable = 5
    segment = struct.pack(
        "<IIQQQQQQ", 1, readable_and_executable, 0, _BASE, _BASE, size, size, 0x1000
    )
    return header + segment + code


_small = _Small()


def chosen() -> StandIn:
    """Return the fastest stand-in that works on this system."""
    with suppress(AttributeError):  # a Python built without memfd_create
        if (path := _small.find()) is not None:
            return StandIn(path, is_shell=False)
    return IN_SHELL

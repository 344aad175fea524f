"""Filters of system calls. Knows classic BPF and the numbers of two architectures; not what a fence forbids.

A filter is a list of rules. The first rule whose system call and arguments fit decides; a call that no
rule fits is allowed.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from playhead.replay.fence.kernel import syscall

ALLOW = 0x7FFF0000
NOTIFY = 0x7FC00000


def refuse(number: int) -> int:
    """Return the action that makes a call fail with this errno."""
    return 0x00050000 | number


_LOAD, _AND, _JUMP, _JUMP_EQUAL, _JUMP_ABOVE, _RETURN = 0x20, 0x54, 0x05, 0x15, 0x35, 0x06
_AT_NUMBER, _AT_ARCHITECTURE, _AT_ARGUMENTS = 0, 4, 16
_X32 = 0x40000000
_SET_MODE_FILTER, _NEW_LISTENER, _WAIT_KILLABLE = 1, 1 << 3, 1 << 5
_HALF = 0xFFFFFFFF


def _numbers(table: str) -> dict[str, int]:
    return {
        name: int(number) for name, _, number in (word.partition("=") for word in table.split())
    }


# The calls that filters use. A call that an architecture does not have is left out.
_X86 = _numbers("""
    unshare=272 mount=165 socket=41 connect=42 sendto=44 sendmsg=46 sendmmsg=307 seccomp=317 io_uring_setup=425
    chmod=90 fchmod=91 fchmodat=268 fchmodat2=452 chown=92 fchown=93 lchown=94 fchownat=260
    utime=132 utimes=235 futimesat=261 utimensat=280 setxattr=188 lsetxattr=189 fsetxattr=190
    removexattr=197 lremovexattr=198 fremovexattr=199 setxattrat=463 removexattrat=466 shmget=29
    msgget=68 semget=64 mq_open=240
""")
_ARM64 = _numbers("""
    unshare=97 mount=40 socket=198 connect=203 sendto=206 sendmsg=211 sendmmsg=269 seccomp=277 io_uring_setup=425
    fchmod=52 fchmodat=53 fchmodat2=452 fchown=55 fchownat=54 utimensat=88 setxattr=5
    lsetxattr=6 fsetxattr=7 removexattr=14 lremovexattr=15 fremovexattr=16 setxattrat=463
    removexattrat=466 shmget=194 msgget=186 semget=190 mq_open=180
""")
# Machine → architecture of a filter, and numbers.
_MACHINES = {"x86_64": (0xC000003E, _X86), "aarch64": (0xC00000B7, _ARM64)}


class ArgumentTest(NamedTuple):
    """A condition: argument number `argument`, masked, is among `values`, or (`inside` false) is not."""

    argument: int
    values: tuple[int, ...]
    mask: int = _HALF
    inside: bool = True
    high: bool = False


class SyscallRule(NamedTuple):
    """The action for a system call, if all conditions hold."""

    name: str
    action: int
    conditions: tuple[ArgumentTest, ...] = ()


def number_of(name: str) -> int:
    """Return the number of a system call. OSError: not known for this machine."""
    return _machine()[1][name]


def compiled(rules: Sequence[SyscallRule], *, foreign: int) -> bytes:
    """Return the compiled filter. `foreign` is the action for calls of another architecture (32-bit programs)."""
    architecture, numbers = _machine()
    program = [
        _statement(_LOAD, _AT_ARCHITECTURE),
        _jump(_JUMP_EQUAL, architecture, 1, 0),
        _statement(_RETURN, foreign),
        _statement(_LOAD, _AT_NUMBER),
    ]
    if numbers is _X86:
        # The x32 calls are the same calls under other numbers.
        program += [_jump(_JUMP_ABOVE, _X32, 0, 1), _statement(_RETURN, refuse(errno.ENOSYS))]
    for rule in rules:
        if rule.name in numbers:
            program += _block(numbers[rule.name], rule)
    return b"".join([*program, _statement(_RETURN, ALLOW)])


def _block(number: int, rule: SyscallRule) -> list[bytes]:
    """Return the instructions of one rule. They continue at the next rule unless all conditions hold."""
    body: list[bytes] = [_statement(_RETURN, rule.action)]
    for condition in reversed(rule.conditions):
        body = [*_test(condition, len(body)), *body]
    return [
        _statement(_LOAD, _AT_NUMBER),
        _jump(_JUMP_EQUAL, number, 0, len(body)),
        *body,
    ]


def _test(one: ArgumentTest, rest: int) -> Iterator[bytes]:
    yield _statement(_LOAD, _AT_ARGUMENTS + 8 * one.argument + (4 if one.high else 0))
    yield _statement(_AND, one.mask)
    count = len(one.values)
    for at, value in enumerate(one.values):
        left = count - at - 1
        # If equal, jump over the remaining comparisons, and for `inside` false also over the rest of the block.
        yield _jump(_JUMP_EQUAL, value, left + (1 if one.inside else rest), 0)
    if one.inside:
        yield _statement(_JUMP, rest)


def _statement(code: int, k: int) -> bytes:
    return struct.pack("=HBBI", code, 0, 0, k)


def _jump(code: int, k: int, yes: int, no: int) -> bytes:
    return struct.pack("=HBBI", code, yes, no, k)


def install(program: bytes) -> None:
    """Install a filter for this process and its children. OSError: the kernel does not allow filters."""
    _installed(program, 0)


def install_with_listener(program: bytes) -> int:
    """Install a filter and return the descriptor on which calls with the action NOTIFY are announced."""
    try:
        # A signal must not interrupt a call that is already being examined: without this flag, half a second of timers
        # lost hundreds of calls. Before Linux 5.19 the flag does not exist.
        return _installed(program, _NEW_LISTENER | _WAIT_KILLABLE)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return _installed(program, _NEW_LISTENER)


def _installed(program: bytes, flags: int) -> int:
    code = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    pointer = ctypes.create_string_buffer(described, len(described))
    return syscall(number_of("seccomp"), "seccomp", _SET_MODE_FILTER, flags, pointer)


def _machine() -> tuple[int, dict[str, int]]:
    name = os.uname().machine
    if name not in _MACHINES or struct.calcsize("P") != 8:
        raise OSError(errno.ENOSYS, f"no filter is written for {name}")
    return _MACHINES[name]

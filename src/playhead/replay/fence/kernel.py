"""System calls that Python has no function for. Knows numbers and errno; does not know why the calls are made.

Uses ctypes instead of a compiled module: a fence must be available wherever Playhead is installed, with or without a
compiler.
"""

from __future__ import annotations

import ctypes
import os
import struct

# Calls that are newer than most C libraries, by number. These are the same on every architecture.
MOUNT_SETATTR = 442
LANDLOCK_CREATE_RULESET = 444
LANDLOCK_ADD_RULE = 445
LANDLOCK_RESTRICT_SELF = 446
PIDFD_GETFD = 438

PR_SET_NO_NEW_PRIVS = 38
_PR_SET_DUMPABLE, _PR_SET_PTRACER = 4, 0x59616D61
_PR_CAPBSET_READ, _PR_CAPBSET_DROP = 23, 24
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_CAPABILITY_VERSION_3 = 0x20080522

# Capabilities that a root in the fence keeps: those that concern its own files, users and ports. All
# others could undo the fence (mount, ptrace, open by handle) or change the machine.
_CHOWN, _DAC_OVERRIDE, _FOWNER, _FSETID, _SETGID, _SETUID = 0, 1, 3, 4, 6, 7
_SETPCAP, _NET_BIND_SERVICE, _SETFCAP = 8, 10, 31
_KEPT = frozenset(
    (
        _CHOWN,
        _DAC_OVERRIDE,
        _FOWNER,
        _FSETID,
        _SETGID,
        _SETUID,
        _SETPCAP,
        _NET_BIND_SERVICE,
        _SETFCAP,
    )
)

libc = ctypes.CDLL(None, use_errno=True)


def call(name: str, *args: object) -> int:
    """Call a function of the C library; raise OSError with its errno if it fails."""
    return _checked(name, getattr(libc, name)(*args))


def syscall(number: int, name: str, *args: object) -> int:
    """Make a system call by its number; raise OSError with its errno if it fails."""
    widened = [ctypes.c_long(one) if isinstance(one, int) else one for one in args]
    return _checked(name, libc.syscall(ctypes.c_long(number), *widened))


def _checked(name: str, result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def no_new_privileges() -> None:
    """Forbid programs from now on to gain privileges by their setuid bit: for an ordinary user a filter
    requires that.
    """
    call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def be_traceable() -> None:
    """Let processes below our parent trace this one: a new user namespace, and Yama, would forbid it."""
    call("prctl", _PR_SET_DUMPABLE, 1, 0, 0, 0)
    libc.prctl(_PR_SET_PTRACER, os.getppid(), 0, 0, 0)  # EINVAL where there is no Yama


def drop_capabilities() -> None:
    """Keep only the capabilities that cannot undo a fence; in the bounding set too, or root would regain all with its
    next exec.
    """
    libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)  # EINVAL before Linux 4.3
    for number in range(64):
        if number not in _KEPT and libc.prctl(_PR_CAPBSET_READ, number, 0, 0, 0) == 1:
            # Refused to a user without capabilities; `no_new_privileges` keeps it so.
            libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    now = ctypes.create_string_buffer(24)
    call("capget", header, now)
    kept = sum(1 << number for number in _KEPT)
    low, high = kept & 0xFFFFFFFF, kept >> 32
    sets = struct.unpack("6I", now.raw)
    masks = (low, low, 0, high, high, 0)  # effective, permitted, inheritable, twice
    call("capset", header, struct.pack("6I", *(a & b for a, b in zip(sets, masks, strict=True))))

"""Landlock: rules for files, TCP ports, signals and abstract sockets that a process gives itself. Knows the
kernel's interface; not the fence.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterable
from contextlib import suppress

from playhead.replay.fence.kernel import (
    LANDLOCK_ADD_RULE,
    LANDLOCK_CREATE_RULESET,
    LANDLOCK_RESTRICT_SELF,
    syscall,
)

_VERSION = 1
_RULE_PATH, _RULE_PORT = 1, 2
# File rights: write, the removal and the making of everything, moves between folders, truncation.
_WRITE, _REMOVES, _MAKES, _MOVE, _TRUNCATE = 1 << 1, 0b11 << 4, 0b1111111 << 6, 1 << 13, 1 << 14
_CHANGES = _WRITE | _REMOVES | _MAKES | _MOVE | _TRUNCATE
_OF_FILES = _WRITE | _TRUNCATE
_BIND_TCP, _CONNECT_TCP = 1, 2
_ABSTRACT_SOCKETS, _SIGNALS = 1, 2
_HAS_PORTS, _HAS_SCOPES = 4, 6


def version() -> int:
    """Return the version of the interface; 0: this kernel does not have it, or it is switched off."""
    with suppress(OSError):
        return syscall(LANDLOCK_CREATE_RULESET, "landlock", None, 0, _VERSION)
    return 0


def check() -> None:
    """Check that `allow_only` is possible here. OSError says why it is not."""
    found = version()
    if not found:
        raise OSError(errno.ENOSYS, "this kernel has no Landlock, or it is switched off")
    if found < _HAS_PORTS:
        why = f"Landlock version {found} has no rules for TCP ports; they came with Linux 6.7"
        raise OSError(errno.ENOSYS, why)


def scope_signals() -> None:
    """Limit signals of this process and its children to each other. OSError: the kernel is too old."""
    _restrict(_ruleset(files=0, ports=0, scopes=_SIGNALS))


def allow_only(paths: Iterable[str], ports: Iterable[int]) -> None:
    """Allow changes of files only at and below these paths, and connections only to these TCP ports.

    OSError: this kernel cannot.
    """
    scopes = _ABSTRACT_SOCKETS | _SIGNALS if version() >= _HAS_SCOPES else 0
    ruleset = _ruleset(files=_CHANGES, ports=_BIND_TCP | _CONNECT_TCP, scopes=scopes)
    for path in paths:
        _allow_path(ruleset, path, _CHANGES if os.path.isdir(path) else _OF_FILES)
    for port in ports:
        _add(ruleset, _RULE_PORT, struct.pack("=QQ", _CONNECT_TCP, port))
    _restrict(ruleset)


def _ruleset(*, files: int, ports: int, scopes: int) -> int:
    members = struct.pack("=QQQ", files, ports, scopes)
    size = 24 if version() >= _HAS_SCOPES else 16
    buffer = ctypes.create_string_buffer(members, len(members))
    return syscall(LANDLOCK_CREATE_RULESET, "landlock_create_ruleset", buffer, size, 0)


def _allow_path(ruleset: int, path: str, rights: int) -> None:
    with suppress(FileNotFoundError):
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            _add(ruleset, _RULE_PATH, struct.pack("=Qi", rights, fd))
        finally:
            os.close(fd)


def _add(ruleset: int, kind: int, members: bytes) -> None:
    buffer = ctypes.create_string_buffer(members, len(members))
    syscall(LANDLOCK_ADD_RULE, "landlock_add_rule", ruleset, kind, buffer, 0)


def _restrict(ruleset: int) -> None:
    try:
        syscall(LANDLOCK_RESTRICT_SELF, "landlock_restrict_self", ruleset, 0)
    finally:
        os.close(ruleset)

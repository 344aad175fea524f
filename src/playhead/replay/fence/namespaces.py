"""The fence of namespaces: a network, mounts and IPC of the command's own, with a cover over the real files (`covers`).

Root needs no user namespace; any other user gets one and keeps their user id: files of other users appear to belong to
`nobody`, and `sudo` does not work. Knows Linux; does not know the command.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress

from playhead.replay.fence import mount_table
from playhead.replay.fence.covers import Covered, cover, survey
from playhead.replay.fence.kernel import call

NEW_MOUNTS, _NEW_IPC, _NEW_USER, _NEW_NET = 0x00020000, 0x08000000, 0x10000000, 0x40000000
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 0x1  # SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP


def enter(own: Sequence[str], *, network: bool = False) -> Covered:
    """Put this process, and the command that it becomes, inside the fence. OSError: this system does not allow it.

    `own`: folders that the program is likely to write to; `network`: keep the network.
    """
    found = survey(own)
    as_user = unshare(NEW_MOUNTS | _NEW_IPC | (0 if network else _NEW_NET))
    covered = cover(found, as_user=as_user)
    _guard_machine()
    if not network:
        _loopback_up()
    return covered


def unshare(flags: int) -> bool:
    """Give this process namespaces of its own. Return whether that needed a user namespace. OSError: refused."""
    try:
        call("unshare", flags)
    except PermissionError:
        user, group = os.geteuid(), os.getegid()
        call("unshare", _NEW_USER | flags)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
        return True
    return False


def _guard_machine() -> None:
    """Cover the disks and the settings of the kernel: root owns them even without capabilities."""
    if os.geteuid():
        return
    for path in ("/proc/sys", "/proc/sysrq-trigger"):
        with suppress(OSError):
            mount_table.bind(path, path)
            mount_table.set_read_only(path)
    with suppress(OSError):
        for name in os.listdir("/sys/class/block"):
            device = f"/dev/{name.replace('!', '/')}"
            if os.path.exists(device):
                mount_table.bind("/dev/null", device)


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _loopback_up() -> None:
    """Start the loopback interface: a program may serve itself, and "localhost" must work there as usual."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh", b"lo", 0).ljust(40, b"\0")
        flags = struct.unpack_from("h", fcntl.ioctl(control, _GET_FLAGS, request), 16)[0]
        wanted = struct.pack("16sh", b"lo", flags | _UP).ljust(40, b"\0")
        fcntl.ioctl(control, _SET_FLAGS, wanted)

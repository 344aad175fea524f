"""A command without a network: in a namespace that has nothing but its own loopback. Knows Linux.

For what the audit hook cannot see: C and Rust clients, children that are no Python. Run as a script,
by the tool's own Python, it becomes the command: same process, same user, same files. Root needs no
more than a network namespace. Anybody else gets a user namespace as well, in which he is himself;
files of other people are shown there as nobody's.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys
from dataclasses import dataclass

_NEW_NET = 0x40000000
_NEW_USER = 0x10000000
_GET_FLAGS, _SET_FLAGS = 0x8913, 0x8914  # SIOCGIFFLAGS, SIOCSIFFLAGS
_UP = 0x1
_FAILED = 125  # what `env` and `unshare` leave with when the command was never run
_LONGEST_PROBE_S = 20


@dataclass(frozen=True)
class Cage:
    """`prefix` goes before the command's words; empty where there is none to be had, and `why` says
    so for the report.
    """

    prefix: tuple[str, ...] = ()
    why: str | None = None


def cage() -> Cage:
    """What can be had on this machine: tried with a command that does nothing."""
    if sys.platform != "linux":
        return Cage(why=f"{sys.platform} has no network namespaces")
    # -I and -S: nothing of the program's environment or folder has a say in this.
    prefix = (sys.executable, "-I", "-S", os.path.abspath(__file__), "--")
    try:
        tried = subprocess.run(
            [*prefix, "/bin/true"],
            capture_output=True,
            text=True,
            timeout=_LONGEST_PROBE_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Cage(why=str(error))
    if tried.returncode:
        return Cage(why=tried.stderr.strip() or f"the probe left with {tried.returncode}")
    return Cage(prefix=prefix)


def enter() -> None:
    """This process, and what it becomes, has no network from here on. OSError: not on this system."""
    try:
        _unshare(_NEW_NET)
    except PermissionError:
        user, group = os.geteuid(), os.getegid()
        _unshare(_NEW_USER | _NEW_NET)
        # Himself, and nobody else: what he writes is his, outside as well.
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    _loopback_up()


def _unshare(flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags):
        number = ctypes.get_errno()
        raise OSError(number, f"no network namespace: {os.strerror(number)}")


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _loopback_up() -> None:
    """A program may serve itself, and there "localhost" must be what it always is."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        asked = struct.pack("16sh", b"lo", 0).ljust(40, b"\0")
        flags = struct.unpack_from("h", fcntl.ioctl(control, _GET_FLAGS, asked), 16)[0]
        wanted = struct.pack("16sh", b"lo", flags | _UP).ljust(40, b"\0")
        fcntl.ioctl(control, _SET_FLAGS, wanted)


def main(argv: list[str]) -> int:
    """`netns.py -- COMMAND…`: become the command, in there."""
    command = argv[1:] if argv[:1] == ["--"] else argv
    try:
        enter()
    except OSError as error:
        sys.stderr.write(f"{error.strerror or error}\n")
        return _FAILED
    try:
        os.execvp(command[0], command)  # noqa: S606  that is the job
    except OSError as error:
        sys.stderr.write(f"playhead: cannot run {command[0]}: {error.strerror}.\n")
        return 127 if isinstance(error, FileNotFoundError) else 126


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Shims over the real paths, for programs that do not look on PATH (`/bin/sh`, `/usr/bin/git`): bind
mounts in a namespace of the command's own. Knows Linux; nobody outside sees them.

Run as a script, by the tool's own Python, it becomes the command: same process, same user. Root needs no
more than a mount namespace. Anybody else gets a user namespace as well, in which he is himself; there
`sudo` does not work, and files of other people are shown as nobody's.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable

_NEW_NAMESPACE, _NEW_USER = 0x00020000, 0x10000000
_BIND, _RECURSIVE, _PRIVATE = 0x1000, 0x4000, 0x40000
_FAILED = 125  # what `env` and `unshare` leave with when the command was never run


def enter(pairs: Iterable[tuple[str, str]]) -> None:
    """This process, and what it becomes, finds the first of each pair where the second was."""
    try:
        _call("unshare", _NEW_NAMESPACE)
    except PermissionError:
        user, group = os.geteuid(), os.getegid()
        _call("unshare", _NEW_USER | _NEW_NAMESPACE)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    _call("mount", b"none", b"/", None, _RECURSIVE | _PRIVATE, None)
    for above, below in pairs:
        _call("mount", os.fsencode(above), os.fsencode(below), None, _BIND, None)


def _call(name: str, *args: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*args):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def main(argv: list[str]) -> int:
    """`mounts.py ABOVE BELOW … -- COMMAND…`: become the command, in there."""
    at = argv.index("--")
    words, command = argv[:at], argv[at + 1 :]
    try:
        enter(zip(words[::2], words[1::2], strict=True))
    except OSError as error:
        sys.stderr.write(f"no shims over the real paths: {error.strerror or error}\n")
        return _FAILED
    try:
        os.execvp(command[0], command)  # noqa: S606  that is the job
    except OSError as error:
        sys.stderr.write(f"playhead: cannot run {command[0]}: {error.strerror}.\n")
        return 127 if isinstance(error, FileNotFoundError) else 126


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

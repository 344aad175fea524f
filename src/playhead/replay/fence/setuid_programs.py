"""Find out whether a command would miss the privileges of setuid programs. Knows PATH and what common setuid
programs need; does not know filters.

A filter that announces connections needs `no_new_privs` from an ordinary user, and then no program gains
privileges. In most containers that changes nothing: the only setuid programs there ask for the password of
another account.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

_FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
# Programs that do something for an ordinary user only with a password that a person types.
_ASK_FOR_PASSWORD = frozenset({"chfn", "chsh", "gpasswd", "passwd", "pkexec", "sg", "newgrp", "su"})
# Programs that work as well without privileges, or do nothing for an ordinary user by default: `ssh-agent` has a group
# of its own only so that its memory is not readable, and `mount` needs an entry in fstab.
_NEED_NONE = frozenset(
    {
        *("bsd-write", "chage", "dotlockfile", "expiry", "mount", "ssh-agent", "umount"),
        *("unix_chkpwd", "wall", "write"),
    }
)
_ADDS_GROUPS = frozenset({"newgrp", "sg"})


def privileged(env: Mapping[str, str]) -> str | None:
    """Return a program that would not work without its privileges; None: there is no such program."""
    harmless = set(_NEED_NONE)
    if not _has_terminal():
        harmless |= _ASK_FOR_PASSWORD
        if _has_more_groups():
            harmless -= _ADDS_GROUPS
    return next((path for path in _setuid(_folders(env)) if _name(path) not in harmless), None)


def _folders(env: Mapping[str, str]) -> list[str]:
    paths = [*_FOLDERS, *env.get("PATH", "").split(os.pathsep)]
    return list(dict.fromkeys(os.path.realpath(one) for one in paths if one))


def _setuid(folders: Sequence[str]) -> Iterator[str]:
    for folder in folders:
        with suppress(OSError), os.scandir(folder) as entries:
            for one in entries:
                with suppress(OSError):
                    found = one.stat()
                    if stat.S_ISREG(found.st_mode) and _gains(one.path, found.st_mode):
                        yield one.path


def _gains(path: str, mode: int) -> bool:
    if mode & stat.S_ISUID or (mode & stat.S_ISGID and mode & stat.S_IXGRP):
        return True
    with suppress(OSError):
        return bool(os.getxattr(path, "security.capability"))
    return False


def _name(path: str) -> str:
    return os.path.basename(path)


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _has_more_groups() -> bool:
    """Return whether the user is in a group that this session does not have: `newgrp` gives it without a password."""
    try:
        name = pwd.getpwuid(os.geteuid()).pw_name
        mine = {one.gr_gid for one in grp.getgrall() if name in one.gr_mem}
    except (KeyError, OSError):
        return False
    return not mine <= {os.getegid(), *os.getgroups()}

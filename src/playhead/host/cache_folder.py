"""Find the user's cache folder, for files that are made once per machine, and the folder for files that processes
exchange. Knows the usual places and their permissions; does not know the files.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def cache_folder(env: Mapping[str, str]) -> str:
    """Return the user's cache folder, or a private temporary folder if it cannot be written."""
    home = env.get("HOME") or os.path.expanduser("~")
    usual = os.path.join(env.get("XDG_CACHE_HOME") or os.path.join(home, ".cache"), "playhead")
    return writable_or_private(usual, env)


def exchange_folder(env: Mapping[str, str]) -> str:
    """Return the temporary folder in which `playhead loop` and its agent exchange files."""
    return os.path.join(env.get("TMPDIR") or "/tmp", f"playhead-{os.getuid()}")  # noqa: S108  its user checks it


def writable_or_private(folder: str, env: Mapping[str, str]) -> str:
    """Return the folder, or a private one in the temporary folder if it cannot be written or made: some users have a
    home that does not exist.
    """
    if _is_writable(folder):
        return folder
    private = os.path.join(env.get("TMPDIR") or "/tmp", f"playhead-cache-{os.geteuid()}")  # noqa: S108  checked
    try:  # noqa: SIM105  every recorded process comes here, and most have not loaded contextlib
        os.mkdir(private, 0o700)
    except OSError:
        pass  # it exists, which is checked next, or nothing can be kept
    return private if _is_private(private) else folder


def _is_writable(folder: str) -> bool:
    """Return whether a folder can be written to, or made."""
    while not os.path.lexists(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)


def _is_private(folder: str) -> bool:
    """Return whether the folder is ours and no other user may write to it, because programs are executed from it."""
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return is_ours and not found.st_mode & 0o077

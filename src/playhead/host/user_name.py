"""The name of the user who runs Playhead."""

from __future__ import annotations

import getpass


def user_name() -> str:
    """Return the login name; `unknown` if the system has none for this user, as in many containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "unknown"

"""Choose the environment variables of a run that are recorded. Pure; knows names, not runs."""

from __future__ import annotations

import re
from collections.abc import Mapping

# They belong to the machine and the user: a replay uses their current values.
OF_THE_MACHINE = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|SHLVL|PWD|OLDPWD|TERM.*|COLORTERM|COLUMNS|LINES|DISPLAY|WAYLAND_.*"
    r"|SSH_.*|XDG_.*|DBUS_.*|TMUX.*|LS_COLORS|_|HOSTNAME|MAIL|TMPDIR|TEMP|TMP|VIRTUAL_ENV.*|CONDA_.*"
    r"|PLAYHEAD_.*|PYTHON(?:PATH|HOME|HASHSEED)|LD_.*|DYLD_.*|CI|GITHUB_.*|NO_COLOR|EDITOR|VISUAL|PAGER"
)
LONGEST = 4096


def kept(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables to record (the recorder redacts secrets in them)."""
    return {
        name: value
        for name, value in sorted(environ.items())
        if len(value) <= LONGEST and not OF_THE_MACHINE.fullmatch(name)
    }

"""The environment of a run, kept for its replay. Pure; knows variables, not runs.

A replay must see what the run saw: a base URL, a model's name, a switch. What belongs to the machine
and the person (PATH, HOME, a terminal) stays that of today, and so does a secret that is there today.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_OF_THE_MACHINE = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|SHLVL|PWD|OLDPWD|TERM.*|COLORTERM|COLUMNS|LINES|DISPLAY|WAYLAND_.*"
    r"|SSH_.*|XDG_.*|DBUS_.*|TMUX.*|LS_COLORS|_|HOSTNAME|MAIL|TMPDIR|TEMP|TMP|VIRTUAL_ENV.*|CONDA_.*"
    r"|PLAYHEAD_.*|PYTHON(?:PATH|HOME|HASHSEED)|LD_.*|DYLD_.*|CI|GITHUB_.*|NO_COLOR|EDITOR|VISUAL|PAGER"
)
_OF_A_SERVICE = re.compile(
    r".*_(?:BASE_URL|API_BASE|ENDPOINT|API_KEY|AUTH_TOKEN|ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN)"
    r"|(?i:(?:https?|all|no)_proxy)|SSL_CERT_.*|REQUESTS_CA_BUNDLE"
)
_LONGEST = 4096


def kept(environ: Mapping[str, str]) -> dict[str, str]:
    """What of an environment goes onto the tape (the recorder takes the secrets out)."""
    return {
        name: value
        for name, value in sorted(environ.items())
        if len(value) <= _LONGEST and not _OF_THE_MACHINE.fullmatch(name)
    }


def restored(
    environ: Mapping[str, str], taped: Mapping[str, object], *, live: bool = False
) -> dict[str, str]:
    """Today's environment with that of the run laid over it.

    `live`: something will be asked for real, so where to ask, and with which key, is today's word.
    """
    todays = {name for name in environ if live and _OF_A_SERVICE.fullmatch(name)}
    made = {
        name: value
        for name, value in environ.items()
        if _OF_THE_MACHINE.fullmatch(name) or name in taped or name in todays
    }
    for name, value in taped.items():
        if not isinstance(value, str) or name in todays:
            continue
        secret = "[redacted:" in value
        if not secret or name not in environ:
            made[name] = value
    return made

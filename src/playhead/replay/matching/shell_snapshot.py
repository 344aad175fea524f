"""Find the command of the model in a command line of Codex. Pure; knows command lines only.

Codex writes the functions and variables of the user's shell into a file, in the background. Until the file exists it
starts a tool with `bash -lc COMMAND`. From then on it starts `bash -c`, with a script of 17 KB that loads the file and
ends with `exec bash -c COMMAND`. A replay may be quicker or slower than the recorded run, so the two forms have to be
one request.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

_FILE = "/shell_snapshots/"
_LOAD = "if . '"
_EXEC = "\nexec '"


def without_snapshot(argv: Sequence[Any]) -> list[Any]:
    """`bash -c "if . '…/shell_snapshots/…' …; exec 'bash' -c 'ls'"` → `bash -lc ls`; other command lines unchanged."""
    words = list(argv)
    script = words[2] if len(words) == 3 and words[1] == "-c" else None
    if not isinstance(script, str) or _FILE not in script:
        return words
    load = script.find(_LOAD)
    # The first one: the command of the model may contain the same words.
    at = script.find(_EXEC, load)
    if load < 0 or at < 0 or _FILE not in script[load:at]:
        return words
    try:
        shell, option, *rest = shlex.split(script[at + 1 :])[1:]
    except ValueError:
        return words
    return [shell, "-lc", *rest] if option == "-c" and rest else words

"""Compile the extension that records lock operations, once per machine. Knows the compiler's options; does not know
what the extension does.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from playhead.hooks.order import noted_locks
from playhead.host.later import Later

if TYPE_CHECKING:
    import sysconfig
    from collections.abc import Mapping

    from playhead.launch.shims import programs
else:
    sysconfig = Later("sysconfig")
    programs = Later("playhead.launch.shims.programs")

SOURCE = Path(noted_locks.__file__).parent / "native" / "locks.c"


def prepare(env: Mapping[str, str]) -> str | None:
    """Return the compiled extension for the processes of a run. None: this machine has no compiler, or no Python
    headers; then locks are not on the tape.
    """
    if env.get("PLAYHEAD_NOTE_LOCKS") == "0":
        return None
    made = noted_locks.path(env)
    if os.path.exists(made):
        return made
    headers = sysconfig.get_paths()["include"]
    if not os.path.exists(os.path.join(headers, "Python.h")):
        return None
    options = ["-shared", "-fPIC", f"-I{headers}", str(SOURCE)]
    found = programs.compiled(Path(made), options, env, is_program=False)
    return None if found is None else str(found)

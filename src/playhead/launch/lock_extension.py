"""Compile the extension that notes locks, once per machine. Knows the compiler's options; not what it notes."""

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
    """The compiled extension for the processes of a run; None: this machine has no compiler, or no headers of
    Python. Locks are not on the tape then.
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

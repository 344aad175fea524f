"""Compile the native core, once per machine. Knows the compiler's options; does not know what the core does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.host import native_core
from playhead.host.later import Later

if TYPE_CHECKING:
    import sysconfig
    from collections.abc import Mapping

    from playhead.launch.shims import programs
else:
    sysconfig = Later("sysconfig")
    programs = Later("playhead.launch.shims.programs")

SOURCES = Path(native_core.SOURCES)


def prepare(env: Mapping[str, str]) -> str | None:
    """Return the compiled core for the processes of a run. None: this machine has no compiler, or no Python headers, or
    the user wants no native code. Then locks are not on the tape, and everything else is done in Python.
    """
    is_unwanted = native_core.is_off(env) and env.get("PLAYHEAD_NOTE_LOCKS") == "0"
    if is_unwanted or native_core.refusal() is not None:
        return None
    made = native_core.path(env)
    if os.path.exists(made):
        return made
    return build(made, env)


def core_of(env: Mapping[str, str]) -> Any:
    """Compile the core if it does not exist yet, and load it. None: this process uses Python."""
    if native_core.core is None and prepare(env) is not None:
        native_core.forget()
    return native_core.load()


def build_beside_sources(env: Mapping[str, str]) -> str | None:
    """Compile the core into the package, while a wheel or an editable install is built. None: not possible here."""
    if native_core.refusal() is not None:
        return None
    for old in SOURCES.glob("core-*.so"):
        if not old.name.startswith(f"core-{native_core.DIGEST}-"):
            old.unlink()  # of other sources
    made = SOURCES / native_core.file_name()
    return str(made) if made.exists() else build(str(made), env)


def build(made: str, env: Mapping[str, str], *more: str) -> str | None:
    """Compile the core into this file, with `more` options for the compiler. None: that is not possible here."""
    headers = sysconfig.get_paths()["include"]
    if not os.path.exists(os.path.join(headers, "Python.h")):
        return None
    sources = sorted(str(one) for one in SOURCES.glob("*.c"))
    options = ["-shared", "-fPIC", "-fvisibility=hidden", f"-I{headers}", *more, *sources]
    found = programs.compiled(Path(made), options, env, is_program=False)
    return None if found is None else str(found)

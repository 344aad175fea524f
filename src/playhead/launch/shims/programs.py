"""Write a shim to disk with its settings. Knows compilers and copies; does not know runs.

The C program is compiled once per machine, into the user's cache, under the hash of its sources. Each shim is
a copy of it with the settings written into space reserved in the binary: it needs no variable and no file, so
it works in any environment that keeps PATH.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from playhead.encoding.values import safe_str
from playhead.host.cache_folder import cache_folder
from playhead.host.later import Later

if TYPE_CHECKING:
    import hashlib
    import shutil
    import subprocess
else:
    shutil = Later("shutil")
    hashlib = Later("hashlib")
    subprocess = Later("subprocess")

_NATIVE = Path(__file__).parent / "native"
# Loaded instead of run as a script, so that Python caches its bytecode; loaded by path, without a search.
_RUN_FALLBACK = f"""import sys
from _frozen_importlib_external import SourceFileLoader
shim = {{"__name__": "fallback"}}
exec(SourceFileLoader("fallback", {str(_NATIVE.parent / "fallback.py")!r}).get_code("fallback"), shim)
shim["main"]"""
# The kernel reads at most this much of a first line, and treats the text after a blank as an option.
_LONGEST_FIRST_LINE = 127
_MARK = b"PLAYHEAD-SHIM-SETTINGS:"
_ROOM = 16384
# The shim that takes the place of all programs of a followed command.
SHIM = "playhead-exec"
_COMPILERS = ("cc", "gcc", "clang")
_LONGEST_COMPILING_S = 60


class ShimSettings(NamedTuple):
    """The settings of a shim, in the order of `struct settings`."""

    mode: str
    name: str
    folder: str
    socket: str
    path: str
    # Empty: the first program of this name on `path`.
    real: str
    launcher: str

    def packed(self) -> bytes:
        return b"".join(os.fsencode(word) + b"\0" for word in self)


def native_program(env: Mapping[str, str]) -> Path | None:
    """Return the compiled shim, from the cache if it is there. None: this machine cannot compile it."""
    return _program(env, "shim", ())


def static_program(env: Mapping[str, str]) -> Path | None:
    """Return the shim linked without shared libraries, if this machine can link it so: it starts in half the time,
    and is 20 times as large. For a run in which one copy takes the place of all programs.
    """
    made = _program(env, "static-shim", ("-static",))
    return native_program(env) if made is None else made


def compiler_on(env: Mapping[str, str]) -> str | None:
    """The C compiler of this environment: the one that CC names, else the first usual one on PATH."""
    path = env.get("PATH", os.defpath)
    names = (env["CC"],) if env.get("CC") else _COMPILERS
    return next((one for one in names if shutil.which(one.split()[0], path=path)), None)


def _program(env: Mapping[str, str], name: str, options: tuple[str, ...]) -> Path | None:
    if env.get("PLAYHEAD_SHIMS_NATIVE") == "0" or sys.platform != "linux":
        return None
    sources = sorted(_NATIVE.glob("*.[ch]"))
    digest = hashlib.sha256(b"".join(one.read_bytes() for one in sources)).hexdigest()[:16]
    made = Path(cache_folder(env)) / f"{name}-{digest}-{platform.machine()}"
    if os.access(made, os.X_OK):
        return made
    failed = made.with_suffix(".failed")
    if failed.exists():
        return None
    return compiled(made, [*options, *(str(one) for one in sources if one.suffix == ".c")], env)


def _remember_failure(made: Path) -> None:
    """Remember that static linking failed, so that a machine without a static C library does not try it before each
    run.
    """
    with suppress(OSError):
        made.with_suffix(".failed").touch()


def compiled(
    made: Path, arguments: list[str], env: Mapping[str, str], *, is_program: bool = True
) -> Path | None:
    """Compile C into this file; None: that is not possible on this machine."""
    try:
        return _compiled(made, arguments, env, is_program=is_program)
    except (OSError, subprocess.SubprocessError):
        return None


def _compiled(
    made: Path, arguments: list[str], env: Mapping[str, str], *, is_program: bool
) -> Path | None:
    made.parent.mkdir(parents=True, exist_ok=True)
    part = made.with_name(f"{made.name}.{os.getpid()}.part")
    for compiler in (env["CC"],) if env.get("CC") else _COMPILERS:
        argv = [*compiler.split(), "-std=gnu11", "-O2", "-w", "-o", str(part), *arguments]
        try:
            done = subprocess.run(
                argv,
                capture_output=True,
                timeout=_LONGEST_COMPILING_S,
                check=False,
                # Compilers look for their own parts there.
                env={"PATH": os.defpath, **env},
            )
        except FileNotFoundError:
            continue
        # Run it once without settings: it prints nothing and exits with 0 if this machine can run it.
        if done.returncode == 0 and (
            not is_program or subprocess.run([str(part)], check=False).returncode == 0
        ):
            os.replace(part, made)
            return made
        if "-static" in arguments:
            _remember_failure(made)
    return None


def write_shims(folder: Path, stands: list[ShimSettings], program: Path | None) -> None:
    """Write each shim into the folder. OSError: programs cannot be run from there."""
    image = None if program is None else program.read_bytes()
    for stand in stands:
        path = folder / stand.name
        content = _script(stand) if image is None else _with_settings(image, stand)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o700)
        try:
            os.write(fd, content)
        finally:
            os.close(fd)
        if not os.access(path, os.X_OK):
            raise PermissionError(f"programs cannot be run from {safe_str(folder)}")


def _with_settings(image: bytes, stand: ShimSettings) -> bytes:
    packed = stand.packed()
    if image.count(_MARK) != 1 or len(packed) > _ROOM - len(_MARK) - 1:
        raise OSError(f"no room in the shim for {len(packed)} bytes of settings")
    at = image.index(_MARK) + len(_MARK)
    return image[:at] + packed + image[at + len(packed) :]


def _script(stand: ShimSettings) -> bytes:
    """Return the script of the fallback. It names the Python that runs it: the program's environment must not choose
    one.
    """
    packed = stand.packed().hex()
    first = f"#!{sys.executable} -IS"
    if len(os.fsencode(first)) <= _LONGEST_FIRST_LINE and len(first.split()) == 2:
        return os.fsencode(f"{first}\n{_RUN_FALLBACK}({packed!r}, sys.argv[1:])\n")
    words = [
        sys.executable,
        "-I",
        "-S",
        "-c",
        f"{_RUN_FALLBACK}(sys.argv[1], sys.argv[2:])",
        packed,
    ]
    quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)
    return os.fsencode(f'#!/bin/sh\nexec {quoted} "$@"\n')

"""Decide which real paths the shims of a run can cover, and test whether this machine allows it. Knows programs
and files; `mounts` covers them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from playhead.launch.shims.post import Cover

_LONGEST_PROBE_S = 20
# Without `site`, Python does not find the package.
_ROOT = str(Path(__file__).parents[3])
_MOUNT = f"""import sys
sys.path.insert(0, {_ROOT!r})
from playhead.launch.shims.mounts import main
sys.exit(main(sys.argv[1:]))"""
_STANDARD = ("/bin", "/usr/bin", "/usr/local/bin")
# The programs that `sh` may be a link to. Links of other names lead to multi-call programs (busybox, a
# version manager), and covering such a program would cover all its names.
_SHELLS = frozenset({"bash", "dash", "ksh", "zsh"})


def cover(
    names: Sequence[str], env: Mapping[str, str], folder: Path, program: Path | None
) -> Cover:
    """Cover the real programs, which move to `folder`/real, with shims in `folder`/bin. OSError: this machine does
    not allow it, and the message gives the reason.
    """
    if program is None:
        raise OSError("they need the shim in C, and it cannot be compiled here")
    files = covered(names, env)
    first = {name: file for file, name in reversed(files.items())}
    shims, real = folder / "bin", folder / "real"
    real.mkdir(mode=0o700)
    for name in first:
        (real / name).touch()
    pairs = [(file, str(real / name)) for name, file in first.items()]
    pairs += [(str(shims / name), file) for file, name in files.items()]
    for name in first:
        (shims / name).touch()
    try:
        prefix = _tried(pairs)
    finally:
        for name in first:
            (shims / name).unlink()
    return Cover(moved={name: str(real / name) for name in first}, prefix=prefix)


def covered(names: Iterable[str], env: Mapping[str, str]) -> dict[str, str]:
    """Return the files that can be covered, with the name of the program for each: only binaries, because a script
    would not find its own folder from another place.
    """
    found: dict[str, str] = {}
    for folder in (*os.get_exec_path(env), *_STANDARD):
        for name in names:
            real = os.path.realpath(os.path.join(folder, name))
            called = os.path.basename(real)
            if _is_elf(real) and (called == name or (name == "sh" and called in _SHELLS)):
                found.setdefault(real, name)
    return found


def _is_elf(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def _tried(pairs: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the words to put before the command so that each first path covers the second."""
    words = [word for pair in pairs for word in pair]
    # -I and -S: the program's environment and folder must have no influence here.
    made = (sys.executable, "-I", "-S", "-c", _MOUNT, *words, "--")
    try:
        tried = subprocess.run(
            [*made, sys.executable, "-I", "-S", "-c", ""],
            capture_output=True,
            text=True,
            timeout=_LONGEST_PROBE_S,
            check=False,
        )
    except subprocess.SubprocessError as error:
        raise OSError(str(error)) from error
    if tried.returncode:
        raise OSError(tried.stderr.strip() or f"the probe exited with {tried.returncode}")
    return made

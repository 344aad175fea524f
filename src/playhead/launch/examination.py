"""Examine which features for recording and replaying this machine has, by trying each of them. Knows fences,
watching, shims, interpreters and libraries; the command line shows the result.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec

from playhead.errors import NoFence
from playhead.host import native_core
from playhead.launch.follow import tracer
from playhead.launch.shims.programs import compiler_on, native_program
from playhead.replay.fence import barrier
from playhead.replay.fence.inside import FenceNeeds

_COMPILERS = ("cc", "gcc", "clang")
_LONGEST_START_S = 20
_OLDEST, _NEWEST = (3, 10), (3, 13)
# Extra of the package → libraries.
_EXTRAS = {"tui": ("textual",), "serve": ("starlette", "uvicorn")}
_BESIDE = {
    "namespaces": "no network; writes go to an overlay in memory",
    "landlock": "no network; the program cannot write files",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One feature: whether it works here, and if not, why."""

    area: str
    name: str
    ok: bool
    detail: str


def examine(env: Mapping[str, str]) -> list[Finding]:
    """Examine every feature, in the order in which a user would ask about them."""
    fences = list(_fences())
    return [
        *fences,
        _best(fences),
        _watching(),
        _native_core(env),
        *_shims(env),
        *_pythons(env),
        *_extras(),
    ]


def _fences() -> Iterator[Finding]:
    for kind in barrier.KINDS:
        try:
            barrier.build(FenceNeeds(own=()), [kind]).abandon()
        except NoFence as error:
            why = str(error).removeprefix(f"{kind}: ")
            yield Finding(area="fence", name=kind, ok=False, detail=why)
        else:
            yield Finding(area="fence", name=kind, ok=True, detail=_BESIDE[kind])


def _best(fences: list[Finding]) -> Finding:
    found = next((one.name for one in fences if one.ok), None)
    if found is None:
        detail = "none: refused, unless --unfenced (verdict `unproven`, exit code 6)"
        return Finding(area="fence", name="replays", ok=False, detail=detail)
    return Finding(area="fence", name="replays", ok=True, detail=f"fenced by {found}")


def _native_core(env: Mapping[str, str]) -> Finding:
    """Return which implementation records here: the native core or Python."""
    why = native_core.refusal()
    if why is None and native_core.is_off(env):
        why = "PLAYHEAD_NATIVE=0"
    elif why is None and not os.path.exists(native_core.path(env)):
        compiler = compiler_on(env)
        if compiler is not None:
            detail = f"compiled by {compiler} before the first recording"
            return Finding(area="record", name="native core", ok=True, detail=detail)
        why = "no C compiler"
    elif why is None and native_core.load() is None:
        why = native_core.reason
    detail = "used for events, secrets and locks" if why is None else f"Python instead: {why}"
    return Finding(area="record", name="native core", ok=why is None, detail=detail)


def _watching() -> Finding:
    """Return whether `record` notices connections that it cannot record."""
    scope = _ptrace_scope()
    try:
        barrier.watched(os.environ).abandon()
    except OSError as error:
        why = f"not watched: {error.strerror or error}"
        return Finding(area="record", name="connections", ok=False, detail=why)
    if scope and os.geteuid():
        why = f"not watched: ptrace_scope is {scope}, so addresses cannot be read"
        return Finding(area="record", name="connections", ok=False, detail=why)
    detail = "watched: unrecorded ones make a run `partial`"
    return Finding(area="record", name="connections", ok=True, detail=detail)


def _ptrace_scope() -> int:
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


def _shims(env: Mapping[str, str]) -> Iterator[Finding]:
    found = compiler_on(env)
    yield Finding(
        area="record",
        name="compiler",
        ok=found is not None,
        detail=found or f"none of {', '.join(_COMPILERS)} is on PATH",
    )
    made = native_program(env)
    yield Finding(
        area="record",
        name="shims",
        ok=True,
        detail="in Python, about 15 ms each" if made is None else "compiled, about 2 ms each",
    )
    yield _following(env)


def _following(env: Mapping[str, str]) -> Finding:
    """Return whether `record` sees every program that a command starts, or only programs that have a shim."""
    why = tracer.why_not(env)
    detail = "every program that a command starts is recorded"
    if why is not None:
        detail = f"only programs with a shim are recorded: {why}"
    return Finding(area="record", name="follow", ok=why is None, detail=detail)


def _pythons(env: Mapping[str, str]) -> Iterator[Finding]:
    """Return the interpreters behind `python` and `python3`, with which agents are likely to be started."""
    for name in ("python3", "python"):
        path = shutil.which(name, path=env.get("PATH"))
        if path is not None:
            version = _version(path)
            known = version is not None and _OLDEST <= version <= _NEWEST
            shown = "does not start" if version is None else ".".join(map(str, version))
            range_ = f"{'.'.join(map(str, _OLDEST))} to {'.'.join(map(str, _NEWEST))}"
            detail = f"{shown} ({path})" + ("" if known else f"; hooks are tested with {range_}")
            yield Finding(area="hooks", name=name, ok=known, detail=detail)


def _version(path: str) -> tuple[int, int] | None:
    program = "import sys; print(*sys.version_info[:2])"
    try:
        done = subprocess.run(
            [path, "-I", "-S", "-c", program],
            capture_output=True,
            text=True,
            timeout=_LONGEST_START_S,
            check=True,
        )
        major, minor = map(int, done.stdout.split())
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return major, minor


def _extras() -> Iterator[Finding]:
    for extra, libraries in _EXTRAS.items():
        missing = [one for one in libraries if find_spec(one) is None]
        detail = f"missing: {', '.join(missing)} (`pip install 'playhead[{extra}]'`)"
        detail = detail if missing else ", ".join(libraries)
        yield Finding(area="extras", name=extra, ok=not missing, detail=detail)
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    yield Finding(area="extras", name="playhead", ok=True, detail=f"runs on Python {python}")

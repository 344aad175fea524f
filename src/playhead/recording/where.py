"""Find the line of the program's own code that made a request, and the owner of a code file: the program, a scheduler,
the standard library or Playhead.

Knows frames and file names; does not know events. Results are cached by code object and instruction, so that the
recorder's hot path only needs a look-up.
"""

from __future__ import annotations

import os
import sys

from playhead.encoding.jsonbytes import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType


_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# The folders of the standard library. `sysconfig` knows those of packages too, but costs 3 ms at every start;
# their names are the same everywhere.
_STANDARD = tuple(
    {os.path.dirname(path) + os.sep for path in (os.__file__, os.path.realpath(os.__file__))}
)
_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_MOST = 20_000

# Keyed by id() of the code, with the code itself beside it. Hashing a code object would walk its constants, and keeping
# the object alive prevents that its id is given to another.
_seen: dict[tuple[int, int], tuple[CodeType, str]] = {}
_is_library: dict[str, bool] = {}


def fragment(frame: FrameType) -> str:
    """Return a place in the code as JSON: `"agent.py:42 respond"`."""
    code = frame.f_code
    key = (id(code), frame.f_lasti)
    hit = _seen.get(key)
    if hit is not None:
        return hit[1]
    text = quoted(code.co_filename, frame.f_lineno, code.co_name)
    if len(_seen) > _MOST:
        _seen.clear()  # a host that makes code as it goes must not make us grow
    _seen[key] = (code, text)
    return text


def quoted(file: str, line: int, function: str) -> str:
    return json_text(f"{shown(file)}:{line} {function}")


def json_text(text: str) -> str:
    # Half of a surrogate pair, as in some file names, is not valid JSON for every reader.
    return quote(text.encode("utf-8", "backslashreplace").decode())


def shown(file: str) -> str:
    """Return a path for display: relative to the working folder if it is below it."""
    try:
        here = os.getcwd() + os.sep
    except OSError:  # the folder was deleted under the program
        return file
    return file.removeprefix(here)


def is_own(file: str) -> bool:
    """Return whether code in that file is Playhead's."""
    return file.startswith(_OWN)


def is_standard(file: str) -> bool:
    """Return whether code in that file is the standard library's."""
    if file.startswith(_STANDARD):
        return not any(one in file for one in _PACKAGES)
    return file.startswith("<frozen ")


def package_of(file: str) -> str | None:
    """Return the top folder or module of the installed package that a file belongs to; None if it belongs to none."""
    for folder in _PACKAGES:
        _, found, inner = file.rpartition(folder)
        if found:
            return inner.partition(os.sep)[0].removesuffix(".py")
    return None


def is_foreign(file: str) -> bool:
    """Return whether code in that file is ours, the standard library's or an installed package's."""
    foreign = _is_library.get(file)
    if foreign is None:
        foreign = file.startswith((_OWN, "<", *_STANDARD)) or any(one in file for one in _PACKAGES)
        _is_library[file] = foreign
    return foreign


def asked(depth: int = 1) -> str:
    """Return the place in the user's own code that made the call, as JSON: `"agent.py:42 respond"`. Written without
    helper functions, because every call needs it.
    """
    frame: FrameType | None = sys._getframe(depth)
    known = _is_library
    while frame is not None:
        code = frame.f_code
        try:
            if not known[code.co_filename]:
                hit = _seen.get((id(code), frame.f_lasti))
                return hit[1] if hit is not None else fragment(frame)
        except KeyError:
            if not is_foreign(code.co_filename):
                return fragment(frame)
        frame = frame.f_back
    return fragment(asker(depth + 1))


def asker(depth: int = 1) -> FrameType:
    """Return the nearest frame of the user's own code: not ours, not the library's, not an SDK's.

    If there is none (a server's worker thread), return the nearest that is not ours.
    """
    frame: FrameType | None = sys._getframe(depth)
    first: FrameType | None = None
    while frame is not None:
        file = frame.f_code.co_filename
        if not is_foreign(file):
            return frame
        if first is None and not file.startswith(_OWN):
            first = frame
        frame = frame.f_back
    return first or sys._getframe(depth)


# The owners of code: the program and its packages; a scheduler or a tool; the standard library or Playhead, which read
# on behalf of other code; a library that carries requests to a server.
PROGRAM, SCHEDULER, BEHALF, CARRIER = range(4)

# Modules whose steady clocks drive the waiting itself, so they keep the real time.
_SCHEDULERS = ("trio", "uvloop", "gevent", "eventlet", "curio", "twisted", "tornado")
# Modules whose steady clocks measure the age of a connection: a replay has no connections, and no other code sees the
# value.
_CARRIERS = ("httpcore", "httpcore2", "urllib3", "aiohttp")
_TOOLS = (
    "pytest_timeout",
    "xdist",
    "execnet",
    "coverage",
    "pydevd",
    "debugpy",
)
# Modules that run tests and print how long that took.
_RUNNERS = ("pytest", "_pytest")
_STANDARD_RUNNERS = tuple(f"{os.sep}unittest{os.sep}{name}.py" for name in ("runner", "case"))
_MOST = 20_000  # a host that makes code as it goes must not make us grow


class _Owners(dict[str, int]):
    """Caches the owner of the code in each file."""

    # Whether the program may be a test runner: this process was started in a run. A recording that a test
    # starts itself leaves the clock of its runner alone.
    has_runners = False

    def include_runners(self) -> None:
        self.has_runners = True
        self.clear()

    def __missing__(self, file: str) -> int:
        if self.has_runners and file.endswith(_STANDARD_RUNNERS) and is_standard(file):
            owner = PROGRAM
        elif is_standard(file) or is_own(file):
            owner = BEHALF
        else:
            package = package_of(file)
            is_tool = package in _TOOLS or (package in _RUNNERS and not self.has_runners)
            owner = SCHEDULER if package in _SCHEDULERS or is_tool else PROGRAM
            if package in _CARRIERS:
                owner = CARRIER
        if len(self) > _MOST:
            self.clear()
        self[file] = owner
        return owner


OWNERS = _Owners()

# By id, with the code itself beside it: hashing a code object walks its constants.
_places: dict[int, tuple[CodeType, str]] = {}


def place_of(code: CodeType) -> str:
    """Return the place of a code object: `agents/planner.py respond`. Without the line, because an edit above must not
    move the place; without the whole path, because an environment has another path on another machine.
    """
    hit = _places.get(id(code))
    if hit is not None:
        return hit[1]
    if len(_places) > _MOST:
        _places.clear()
    text = f"{'/'.join(code.co_filename.split(os.sep)[-2:])} {code.co_name}"
    _places[id(code)] = (code, text)
    return text


def reader_at(frame: FrameType) -> CodeType:
    """Return the nearest code that reads for itself."""
    outer: FrameType | None = frame
    while outer is not None:
        if OWNERS[outer.f_code.co_filename] != BEHALF:
            return outer.f_code
        outer = outer.f_back
    return frame.f_code


def is_program(frame: FrameType) -> bool:
    """Return whether this is code of the program or its packages, and not of the scheduler or tool that runs it."""
    return OWNERS[frame.f_code.co_filename] in (PROGRAM, CARRIER)


# Modules that learn about the machine by starting other programs (`uname -p`, `ldconfig -p`), also long after
# they were imported.
_MACHINE_READERS = frozenset({"platform", "ctypes.util", "uuid", "distro", "distro.distro"})


def loading_library() -> str | None:
    """Return the library that makes this call while it is imported, or to learn about the machine. None: the program's
    own code makes it, or a library on the program's behalf.

    Walks the whole stack, so it is for calls that are expensive anyway.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not is_foreign(file):
            return None
        if not file.startswith((_OWN, "<")):
            name = frame.f_globals.get("__name__")
            is_body = frame.f_code.co_name == "<module>" and name != "__main__"
            if isinstance(name, str) and (is_body or name in _MACHINE_READERS):
                return name
        frame = frame.f_back
    return None

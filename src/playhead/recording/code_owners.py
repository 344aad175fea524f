"""On whose behalf something is read: whose code a file holds, and what a place in it is called. Knows
frames and file names; not what is read.
"""

from __future__ import annotations

import os

from playhead.recording import where

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType


# Code of the program and its packages; of a scheduler or a tool; of the standard library or our own,
# which read on behalf of somebody else; of what carries a request to a server.
PROGRAM, SCHEDULER, BEHALF, CARRIER = range(4)

# Whose steady clocks drive the waiting itself: they stay with the time that passes.
_SCHEDULERS = ("trio", "uvloop", "gevent", "eventlet", "curio", "twisted", "tornado")
# Whose steady clocks say how old a connection is: a replay has none, and nobody else hears of it.
_CARRIERS = ("httpcore", "httpcore2", "urllib3", "aiohttp")
_TOOLS = (
    "pytest",
    "_pytest",
    "pytest_timeout",
    "xdist",
    "execnet",
    "coverage",
    "pydevd",
    "debugpy",
)
_MOST = 20_000  # a host that makes code as it goes must not make us grow


class _Owners(dict[str, int]):
    """Whose code is in a file, remembered."""

    def __missing__(self, file: str) -> int:
        if where.is_standard(file) or where.is_own(file):
            owner = BEHALF
        else:
            package = where.package_of(file)
            owner = SCHEDULER if package in _SCHEDULERS or package in _TOOLS else PROGRAM
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
    """`agents/planner.py respond`. Not the line: an edit above must not move the place; not the whole
    path: an environment lies elsewhere on another machine.
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
    """The nearest code that reads for itself."""
    outer: FrameType | None = frame
    while outer is not None:
        if OWNERS[outer.f_code.co_filename] != BEHALF:
            return outer.f_code
        outer = outer.f_back
    return frame.f_code


def is_program(frame: FrameType) -> bool:
    """Whether this is code of the program or its packages, and not of what runs it."""
    return OWNERS[frame.f_code.co_filename] in (PROGRAM, CARRIER)

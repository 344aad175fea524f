"""Shorten the traceback of a program that a divergence has ended: the report after it says more than the frames of
SDKs and of Playhead. Knows `sys.excepthook`; does not know what differs.

The hook is installed when the first divergence is raised, not at the start: libraries (exceptiongroup, trio) look
whether `sys.excepthook` is still the original, and a replay must show them what the recording showed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from playhead.errors import Divergence
from playhead.host.later import Later
from playhead.recording.where import is_foreign

if TYPE_CHECKING:
    import traceback
    from types import TracebackType
else:
    traceback = Later("traceback")  # programs that end well do not need it

_is_armed = False


def arm() -> None:
    """Allow `shorten` in this process. Only programs that `playhead replay` starts do: a test that replays in its own
    process keeps its hook.
    """
    global _is_armed  # noqa: PLW0603  one for the process
    _is_armed = True


def shorten() -> None:
    """Install the hook, unless the program has one of its own."""
    if _is_armed and sys.excepthook is sys.__excepthook__:
        sys.excepthook = _show


def _show(kind: type[BaseException], error: BaseException, frames: TracebackType | None) -> None:
    if not _is_caused_by_divergence(error):
        sys.__excepthook__(kind, error, frames)
        return
    described = traceback.TracebackException(kind, error, frames)
    _keep_own_frames(described)
    sys.stderr.write("".join(described.format()))


def _is_caused_by_divergence(error: BaseException | None) -> bool:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, Divergence):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def _keep_own_frames(described: traceback.TracebackException | None) -> None:
    """Leave out frames of libraries, in the whole chain of exceptions. If all are of libraries, the last one stays."""
    while described is not None:
        own = [frame for frame in described.stack if not is_foreign(frame.filename)]
        described.stack[:] = own or described.stack[-1:]
        described = described.__cause__ or described.__context__

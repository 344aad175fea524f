"""The stdin of asyncio's subprocesses. Everything else of theirs is `Popen`'s.

asyncio gives `Popen` one end of a socket pair as stdin, and puts the other end into the place where
`Popen` would have put a pipe. Knows that place; not event loops.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from playhead.hooks.guest import Patches, need
from playhead.hooks.process.flight import Flight
from playhead.hooks.process.pipes import Tapped, tap


def hook(module: ModuleType, patches: Patches) -> None:
    need(module, "_UnixSubprocessTransport")
    need(module._UnixSubprocessTransport, "_start")
    patches.replace(module._UnixSubprocessTransport, "_start", _start)


def _start(original: Callable[..., None]) -> Callable[..., None]:
    def _start(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        popen = self._proc
        flight: Flight | None = getattr(popen, "_playhead_flight", None)
        if flight is not None and popen.stdin is not None and not isinstance(popen.stdin, Tapped):
            popen.stdin = tap(popen.stdin, flight, "stdin", 0)

    return _start

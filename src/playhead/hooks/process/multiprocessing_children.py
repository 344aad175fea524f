"""Record the processes that the program starts with `multiprocessing`. A replay starts them again.

They run the program's own code and exchange pickled objects with it, so they are part of the program. The tape has
each of them and how it ended. Knows `BaseProcess`; does not know pools.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from playhead.hooks.guest import Patches, need
from playhead.hooks.process import children
from playhead.hooks.process.flight import ProcessAdapter, by_pid
from playhead.recording import deck, order_slot
from playhead.recording.deck import Call, Crossing

# Names that `multiprocessing` makes up by counting: which process gets which number is a race.
_COUNTED = re.compile(r"(?:\w*Process|\w*PoolWorker)-[\d:]+")


def hook(module: ModuleType, patches: Patches) -> None:
    need(module, "BaseProcess")
    need(module.BaseProcess, "start", "pid")
    patches.replace(module.BaseProcess, "start", _start)


def hook_forkserver(module: ModuleType, patches: Patches) -> None:
    """Hook processes of a fork server, which are not our children: they cannot be waited for by their pid."""
    need(module, "Popen")
    need(module.Popen, "poll")
    patches.replace(module.Popen, "poll", _poll)


def _start(original: Callable[[Any], None]) -> Callable[[Any], None]:
    def start(self: Any) -> None:
        open_deck = deck.active()
        if open_deck is None:
            return original(self)
        open_deck.perform(_described(self), _Start(self, original))
        return None

    return start


class _Start(ProcessAdapter):
    """One start of a process."""

    def __init__(self, process: Any, start: Callable[[Any], None]) -> None:
        self._process = process
        self._start = start

    def live(self, crossing: Crossing) -> None:
        self.begin(crossing)
        order_slot.share_output(crossing.deck.recorder)
        _, env = children.carry([sys.executable or "python"], None, crossing)
        with children.LentVariables(env):
            self._start(self._process)

    def observe(self, crossing: Crossing, result: None) -> None:
        self.flight.started(self._process.pid)

    def serve(self, crossing: Crossing) -> None:
        """Start the process for real, because it replays its own part of the run."""
        with crossing:
            self.live(crossing)
        self.observe(crossing, None)


def _described(process: Any) -> Call:
    target = getattr(process, "_target", None) or type(process).run
    function = getattr(target, "__qualname__", None) or type(target).__qualname__
    module = getattr(target, "__module__", None) or type(target).__module__
    request = {"target": f"{module}:{function}", "start": getattr(process, "_start_method", None)}
    if not _COUNTED.fullmatch(process.name):
        request["name"] = process.name
    return Call(
        boundary="process",
        name=f"multiprocessing {function}",
        request=request,
        # `own`: a replay runs it again.
        facts={
            "command": f"{process.name}: {module}.{function}",
            "via": "multiprocessing",
            "own": True,
        },
    )


def _poll(original: Callable[..., Any]) -> Callable[..., Any]:
    def poll(self: Any, *args: Any, **kwargs: Any) -> Any:
        code = original(self, *args, **kwargs)
        if isinstance(code, int) and (flight := by_pid.get(self.pid)) is not None:
            flight.exited(code)
        return code

    return poll

"""An orchestrator with its own event bus. It does not use Playhead, except in the last lines.

`playhead.tap` records every emitted event before it is handled; nothing else changes.
"""

from collections.abc import Callable
from typing import Any

import playhead


class Bus:
    """An event bus: add a handler to receive events."""

    def __init__(self) -> None:
        self.handlers: list[Callable[[str, Any], None]] = []

    def emit(self, kind: str, **data: Any) -> None:
        for handler in self.handlers:
            handler(kind, data)


def work(bus: Bus) -> None:
    bus.emit("plan:made", steps=["fetch", "summarise", "send"])
    for step in ("fetch", "summarise", "send"):
        bus.emit("worker:dispatched", worker=f"{step}-1", step=step)
        bus.emit("worker:done", worker=f"{step}-1", step=step, items=3)
    bus.emit("plan:finished", items=9)


if __name__ == "__main__":
    bus = Bus()
    bus.handlers.append(lambda kind, data: print(f"{kind} {data}"))
    with playhead.record(name="orchestrator"):
        playhead.tap(bus)
        work(bus)

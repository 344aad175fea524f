"""An orchestrator that has a bus of its own and knows nothing of Playhead, but for the last lines.

`playhead.tap` puts everything that is emitted on a tape, before it is handled; nothing else changes.
"""

from collections.abc import Callable
from typing import Any

import playhead


class Bus:
    """Whoever wants to hear of events adds a handler."""

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

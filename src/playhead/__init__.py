"""Playhead: a flight recorder and VCR for AI agent runs.

    import playhead

    with playhead.record(name="nightly") as run:
        run.emit("plan:made", {"steps": 3})
        with run.turn("respond", purpose="answer the user") as turn:
            turn.seam("analyse", {"intent": "refund"})

Names are loaded when they are first used: `import playhead` costs next to nothing.
"""

from __future__ import annotations

from playhead._version import __version__
from playhead.later import loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from playhead.boundaries.state import watch
    from playhead.boundaries.tools import tool
    from playhead.errors import Divergence, PlayheadError
    from playhead.lanes import lane
    from playhead.recording import record
    from playhead.runs import Run, current, seam, turn
    from playhead.sessions import load, replay_session, replay_worker
    from playhead.tapping import on_event, tap
    from playhead.turns import Turn

_HOMES = {
    "Divergence": "playhead.errors",
    "PlayheadError": "playhead.errors",
    "Run": "playhead.runs",
    "Turn": "playhead.turns",
    "current": "playhead.runs",
    "lane": "playhead.lanes",
    "load": "playhead.sessions",
    "on_event": "playhead.tapping",
    "record": "playhead.recording",
    "replay_session": "playhead.sessions",
    "replay_worker": "playhead.sessions",
    "seam": "playhead.runs",
    "tap": "playhead.tapping",
    "tool": "playhead.boundaries.tools",
    "turn": "playhead.runs",
    "watch": "playhead.boundaries.state",
}

__all__ = [
    "Divergence",
    "PlayheadError",
    "Run",
    "Turn",
    "__version__",
    "current",
    "lane",
    "load",
    "on_event",
    "record",
    "replay_session",
    "replay_worker",
    "seam",
    "tap",
    "tool",
    "turn",
    "watch",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'playhead' has no attribute {name!r}")
    value = getattr(loaded(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

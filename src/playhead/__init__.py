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
from playhead.host.later import loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from playhead.errors import Divergence, PlayheadError
    from playhead.hooks.state.watch import watch
    from playhead.hooks.tools.decorator import tool
    from playhead.launch.record_run import record
    from playhead.launch.session_replay import replay_session, replay_worker
    from playhead.launch.sessions import load
    from playhead.launch.tap import on_event, tap
    from playhead.recording.lanes import lane
    from playhead.recording.runs import Run, current, seam, turn
    from playhead.recording.turns import Turn

_HOMES = {
    "Divergence": "playhead.errors",
    "PlayheadError": "playhead.errors",
    "Run": "playhead.recording.runs",
    "Turn": "playhead.recording.turns",
    "current": "playhead.recording.runs",
    "lane": "playhead.recording.lanes",
    "load": "playhead.launch.sessions",
    "on_event": "playhead.launch.tap",
    "record": "playhead.launch.record_run",
    "replay_session": "playhead.launch.session_replay",
    "replay_worker": "playhead.launch.session_replay",
    "seam": "playhead.recording.runs",
    "tap": "playhead.launch.tap",
    "tool": "playhead.hooks.tools.decorator",
    "turn": "playhead.recording.runs",
    "watch": "playhead.hooks.state.watch",
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

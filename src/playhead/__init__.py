"""Playhead: a flight recorder and VCR for AI agent runs.

    import playhead

    with playhead.record(name="nightly") as run:
        run.emit("plan:made", {"steps": 3})
        with run.turn("respond", purpose="answer the user") as turn:
            turn.seam("analyse", {"intent": "refund"})

Names are loaded when they are first used: `import playhead` costs next to nothing.
"""

from __future__ import annotations

import os
import sys

from playhead._version import __version__
from playhead.host.later import loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from playhead.errors import Divergence, PlayheadError
    from playhead.hooks.state.watch import watch
    from playhead.hooks.tools.decorator import tool
    from playhead.launch.record_run import record
    from playhead.launch.replaying.session_replay import replay_session, replay_worker
    from playhead.launch.sessions import load
    from playhead.launch.tap import on_event, tap
    from playhead.recording.lanes import lane
    from playhead.recording.runs import Run, current, retrieval, seam, turn
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
    "replay_session": "playhead.launch.replaying.session_replay",
    "replay_worker": "playhead.launch.replaying.session_replay",
    "retrieval": "playhead.recording.runs",
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
    "retrieval",
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


def _is_switched_on() -> bool:
    """Return whether PLAYHEAD_RECORD=1 requests a recording of this program. Playhead's own commands are not recorded,
    nor a test run that loads its plugin, nor a process that a recorded run has started.
    """
    if os.environ.get("PLAYHEAD_RECORD", "").strip().lower() not in ("1", "true", "yes", "on"):
        return False
    argv = [str(word) for word in getattr(sys, "orig_argv", ())]
    module = argv[argv.index("-m") + 1 :][:1] if "-m" in argv else []
    program = os.path.basename(str((getattr(sys, "argv", None) or [""])[0]))
    is_own = program in ("playhead", "playhead.exe") or module[:1] == ["playhead"]
    is_part = bool(module) and module[0].startswith("playhead.")
    return not (is_own or is_part or "PLAYHEAD_RUN" in os.environ or "_pytest" in sys.modules)


if _is_switched_on():
    loaded("playhead.launch.record_run").record_process()

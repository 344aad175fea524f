"""A loop of agent iterations, in stages, each one captured. Standard library only.

    from playhead import loop

    with loop.open_session("nightly", ["plan:1", "work:5"], record=True) as session:
        for iteration in session.iterations():
            iteration.prompt(text := f"{iteration.stage.name}: go on")
            iteration.response(my_agent(text))
            if finished():
                iteration.decide("stop")

`loop.run(Plan(…))` does the same with a command, as `playhead loop` does. Names are loaded when they are
first used: a step of a shell script must not wait for all of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playhead.loop.beginning import open_session
    from playhead.loop.iteration import Iteration
    from playhead.loop.plan import Plan
    from playhead.loop.progress import Progress
    from playhead.loop.running import Result, run
    from playhead.loop.session import Session
    from playhead.loop.stages import Decision, Stage

_HOMES = {
    "Decision": "playhead.loop.stages",
    "Iteration": "playhead.loop.iteration",
    "Plan": "playhead.loop.plan",
    "Progress": "playhead.loop.progress",
    "Result": "playhead.loop.running",
    "Session": "playhead.loop.session",
    "Stage": "playhead.loop.stages",
    "open_session": "playhead.loop.beginning",
    "run": "playhead.loop.running",
}

__all__ = [
    "Decision",
    "Iteration",
    "Plan",
    "Progress",
    "Result",
    "Session",
    "Stage",
    "open_session",
    "run",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'playhead.loop' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

"""A loop of agent iterations, in stages, each one captured. Standard library only.

    from playhead import loop

    with loop.open_session("nightly", ["plan:1", "work:5"], record=True) as session:
        for iteration in session.iterations():
            iteration.prompt(text := f"{iteration.stage.name}: go on")
            iteration.response(my_agent(text))
            if finished():
                iteration.decide("stop")

`loop.run(Plan(…))` does the same with a command, as `playhead loop` does.
"""

from playhead.loop.beginning import open_session
from playhead.loop.iteration import Iteration
from playhead.loop.plan import Plan
from playhead.loop.running import Result, run
from playhead.loop.session import Session
from playhead.loop.stages import Decision, Stage

__all__ = ["Decision", "Iteration", "Plan", "Result", "Session", "Stage", "open_session", "run"]

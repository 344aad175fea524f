"""The parts of a recorded session: the first one, and one for each `--resume`.

Each part may have other stages, another command and other prompts than the first. So the first event of each part
has its plan and the state that it started with, and a replay goes through the same parts. Knows plans, states and
where the tape has them; does not know how iterations are made.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

from playhead import events
from playhead.loop import state as states
from playhead.loop.plan import Plan
from playhead.loop.stages import Stage
from playhead.loop.state import State
from playhead.recording import deck

_MEMBER = "loop"


class Part(NamedTuple):
    """A part on the tape; `facts` is None on tapes of older versions, which do not have them."""

    facts: dict[str, Any] | None

    def state(self, before: State) -> State:
        """The state that the part started with. `before` is the state that the previous part ended with."""
        if self.facts is None:
            return before if before.over else states.resumed(before, before.stages)
        stages = tuple(Stage(*one) for one in self.facts["stages"])
        return before._replace(
            stages=stages,
            counts=tuple(self.facts["counts"]),
            stage=self.facts["stage"],
            status="running",
            open=None,
        )

    def plan(self, plan: Plan) -> Plan:
        """Return the plan of a resumed part: `plan` with the recorded stages, command, prompt and context."""
        if self.facts is None:
            return plan
        context = self.facts["context"]
        return dataclasses.replace(
            plan,
            stages=tuple(Stage(*one) for one in self.facts["stages"]),
            command=tuple(self.facts["command"]),
            prompt=self.facts["prompt"],
            context=None if context is None else Path(context),
            resume=True,
        )


def facts_of(plan: Plan, state: State) -> dict[str, Any]:
    """The members of the part's first event."""
    return {
        _MEMBER: {
            "stages": [list(one) for one in state.stages],
            "counts": list(state.counts),
            "stage": state.stage,
            "command": list(plan.command),
            "prompt": plan.prompt,
            "context": None if plan.context is None else str(plan.context),
        }
    }


def taped_parts() -> list[Part]:
    """Return the parts of the session on the tape that serves this process; empty: there is no tape."""
    active = deck.declared()
    recording = None if active is None else getattr(active.mode, "recording", None)
    if recording is None:
        return []
    tape = recording.tape
    if not tape.manifest.generation:
        # Most sessions were never resumed; only the first event is needed.
        first = next((one for one in tape.events() if one.kind == events.RUN_START), None)
        return [] if first is None else [_part(tape.whole(first).data)]
    return [_part(tape.whole(one).data) for one in tape.events() if one.kind == events.RUN_START]


def _part(data: dict[str, Any]) -> Part:
    found = data.get(_MEMBER)
    known = {"stages", "counts", "stage", "command", "prompt", "context"}
    return Part(found if isinstance(found, dict) and known <= found.keys() else None)

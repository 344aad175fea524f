"""Convert the steps of an agent to events of a run. Pure; knows kinds of events, not tapes.

An answer becomes an LLM call as if its exchange had been recorded; a tool that it asked for becomes a tool call with
the answer as its cause. So readers of runs need no knowledge of transcripts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from playhead import events
from playhead.transcripts.transcript_steps import (
    ModelAnswer,
    SessionEnded,
    SessionNote,
    SessionStarted,
    ToolAnswer,
    TranscriptStep,
    UserPrompt,
)

# Kinds of events for the tool's report on a run: its start, and its result.
SESSION = "agent.session"
RESULT = "agent.result"

_HEAD = {"status": 200, "headers": [["content-type", "application/json"]]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An event that is not written yet. `parent` and `cause` are positions in the list of drafts."""

    kind: str
    data: Any
    wall: int
    parent: int | None = None
    cause: int | None = None
    lane: str = "main"


def drafts_of(
    steps: Iterable[TranscriptStep], *, base: int = 0, started: int = 0, turns: bool = False
) -> list[Draft]:
    """Return drafts in the order of the steps. The event at position N has the seq `base + N`; `started` is the
    moment before the first. `turns`: each prompt begins a turn.
    """
    telling = _Telling(base, started, turns=turns)
    for step in steps:
        telling.tell(step)
    telling.end_turn()
    return telling.drafts


class _Telling:
    def __init__(self, base: int, started: int, *, turns: bool) -> None:
        self.drafts: list[Draft] = []
        self._base = base
        self._now = started
        self._turns = turns
        self._turn: int | None = None
        self._turn_began = 0
        self._tools: dict[str, int] = {}
        self._lanes: dict[str, str] = {}
        self._error: str | None = None

    def tell(self, step: TranscriptStep) -> None:
        if isinstance(step, ModelAnswer):
            self._said(step)
        elif isinstance(step, ToolAnswer):
            self._answered(step)
        elif isinstance(step, UserPrompt):
            self._prompted(step)
        elif isinstance(step, SessionEnded):
            self._ended(step)
        elif isinstance(step, SessionStarted):
            data = {name: value for name, value in step._asdict().items() if value and name != "at"}
            self._add(SESSION, data, step.at)
        elif isinstance(step, SessionNote):
            self._add(step.kind, dict(step.data), step.at)

    def end_turn(self) -> None:
        if self._turn is None:
            return
        data: dict[str, Any] = {
            "turn": self._base + self._turn,
            "name": "respond",
            "how": "returned" if self._error is None else "raised",
            "took_ns": self._now - self._turn_began,
            "last_seam": None,
            "seams": [],
        }
        if self._error is not None:
            data["error"] = failure("AgentError", self._error)
        self._add(events.TURN_END, data, None)
        self._turn, self._error = None, None

    def _prompted(self, step: UserPrompt) -> None:
        if not self._turns:
            return
        self.end_turn()
        data = {"name": "respond", "purpose": None, "input": step.text}
        self._turn = self._add(events.TURN_START, data, step.at, top=True)
        self._turn_began = self._now

    def _said(self, step: ModelAnswer) -> None:
        above, lane = self._place(step.agent)
        began = self._now
        data = {
            "boundary": "llm",
            "name": step.model or step.api,
            "api": step.api,
            "request": {"body": {"text": _json(step.sent)}},
        }
        call = self._add(events.CALL, data, None, parent=above, lane=lane)
        seq = self._base + call
        took = max(0, (step.until or step.at or began) - began)
        if step.error is not None:
            self._error = step.error
            outcome = {"call": seq, "how": "raised", "took_ns": took}
            outcome["error"] = failure("ApiError", step.error)
            self._add(events.OUTCOME, outcome, step.until, parent=call, lane=lane)
            return
        head = {"call": seq, "stream": "head", "value": _HEAD}
        self._add(events.CHUNK, head, step.at, parent=call, lane=lane)
        body = _json(step.body)
        size = len(body.encode("utf-8", "surrogatepass"))
        chunk = {"call": seq, "stream": "body", "text": body, "sizes": [size], "at_ns": [took]}
        self._add(events.CHUNK, chunk, step.until, parent=call, lane=lane)
        outcome = {"call": seq, "how": "returned", "took_ns": took}
        self._add(events.OUTCOME, outcome, step.until, parent=call, lane=lane)
        for asked in step.asked:
            request = {"arguments": asked.arguments}
            wanted = {"boundary": "tool", "name": asked.name, "request": request}
            self._tools[asked.id] = self._add(
                events.CALL, wanted, None, parent=above, cause=call, lane=lane
            )

    def _answered(self, step: ToolAnswer) -> None:
        call = self._tools.get(step.id)
        if call is None:
            return  # the result of a call from before the beginning of the file
        asked = self.drafts[call]
        took = max(0, (step.at or self._now) - asked.wall)
        outcome: dict[str, Any] = {"call": self._base + call, "took_ns": took}
        if step.is_error:
            outcome |= {"how": "raised", "error": failure("ToolError", _said_so(step.value))}
        else:
            outcome |= {"how": "returned", "value": step.value}
        self._add(events.OUTCOME, outcome, step.at, parent=call, lane=asked.lane)

    def _ended(self, step: SessionEnded) -> None:
        data = {name: value for name, value in step._asdict().items() if name != "at"}
        data = {name: value for name, value in data.items() if value not in (None, "", {})}
        self._add(RESULT, data, step.at)
        self._error = None if step.ok else step.error

    def _place(self, agent: str | None) -> tuple[int | None, str]:
        """Return the event and the lane below which an agent works."""
        if agent is None:
            return self._turn, "main"
        lane = self._lanes.setdefault(agent, f"main/{len(self._lanes) + 1}")
        return self._tools.get(agent, self._turn), lane

    def _add(
        self, kind: str, data: Any, at: int | None, *, parent: int | None = None,
        cause: int | None = None, lane: str = "main", top: bool = False,
    ) -> int:  # fmt: skip
        # Lines of one answer may be older than those of a tool in between: times of events never decrease.
        self._now = max(self._now, at or 0)
        above = None if top else self._turn if parent is None else parent
        self.drafts.append(
            Draft(kind=kind, data=data, wall=self._now, parent=above, cause=cause, lane=lane)
        )
        return len(self.drafts) - 1


def failure(kind: str, message: str) -> dict[str, Any]:
    """Return an exception in the form that views show."""
    return {"$exception": kind, "message": message}


def _said_so(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Mapping[str, Any] | Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)

"""Steps of a coding agent's session: prompts, answers, tool results, the end. Data only.

An answer keeps the form of its API, so that the decoders and prices of recorded exchanges work for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Union


class SessionStarted(NamedTuple):
    """The session begins: tool, session id, model and version."""

    tool: str
    session: str | None = None
    model: str | None = None
    cwd: str | None = None
    version: str | None = None
    at: int | None = None


class UserPrompt(NamedTuple):
    """A prompt by a person or a program."""

    text: str
    at: int | None = None


class AskedTool(NamedTuple):
    """A tool call in an answer."""

    id: str
    name: str
    arguments: Any


class ModelAnswer(NamedTuple):
    """One answer of a model. `sent` and `body` are request and response in the form of `api`.

    The request has only the new messages. `agent` is the tool call that a sub-agent works for.
    """

    api: str
    model: str | None
    sent: Mapping[str, Any]
    body: Mapping[str, Any]
    text: str = ""
    asked: tuple[AskedTool, ...] = ()
    agent: str | None = None
    error: str | None = None
    at: int | None = None
    until: int | None = None


class ToolAnswer(NamedTuple):
    """The result of a tool."""

    id: str
    value: Any
    is_error: bool = False
    at: int | None = None


class SessionNote(NamedTuple):
    """Another event of the session: a retry, a warning, a compaction."""

    kind: str
    data: Mapping[str, Any]
    at: int | None = None


class SessionEnded(NamedTuple):
    """The session ends, with the result that the tool reports. `usage` has Playhead's names of token counts."""

    ok: bool
    text: str = ""
    error: str | None = None
    usage: Mapping[str, int] = MappingProxyType({})
    cost_usd: float | None = None
    turns: int | None = None
    at: int | None = None


TranscriptStep = Union[  # noqa: UP007  evaluated by 3.10, too
    SessionStarted, UserPrompt, ModelAnswer, ToolAnswer, SessionNote, SessionEnded
]


class ProgressLine(NamedTuple):
    """One line of live progress."""

    kind: str  # text, delta (a piece of one), thought, tool, failure, retry, end
    text: str


class StreamSummary(NamedTuple):
    """Totals of a stream. None: not reported."""

    text: str = ""
    error: str | None = None
    answers: int = 0
    tools: int = 0
    usage: Mapping[str, int] = MappingProxyType({})
    cost_usd: float | None = None


def outline(steps: list[TranscriptStep]) -> StreamSummary:
    said = [one for one in steps if isinstance(one, ModelAnswer)]
    ends = [one for one in steps if isinstance(one, SessionEnded)]
    texts = [one.text for one in said if one.agent is None and one.text and one.error is None]
    usage: dict[str, int] = {}
    for end in ends:
        for name, count in end.usage.items():
            usage[name] = usage.get(name, 0) + count
    costs = [end.cost_usd for end in ends if end.cost_usd is not None]
    errors = [end.error for end in ends if not end.ok]
    return StreamSummary(
        text="\n\n".join(texts) or next((end.text for end in ends if end.text), ""),
        error=(errors[-1] or "the agent says that it failed") if errors else None,
        answers=len(said),
        tools=sum(len(one.asked) for one in said),
        usage=usage,
        cost_usd=sum(costs) if costs else None,
    )


def conversation(steps: list[TranscriptStep]) -> str:
    """Return the contents of a session without ids and times: equal for two sessions that behaved alike."""
    said: list[Any] = []
    for one in steps:
        if isinstance(one, ModelAnswer):
            said.append([one.text, [[use.name, use.arguments] for use in one.asked], one.error])
        elif isinstance(one, ToolAnswer):
            said.append([one.value, one.is_error])
        elif isinstance(one, SessionEnded):
            said.append([one.ok, one.text, one.error])
    return json.dumps(said, sort_keys=True, default=str)

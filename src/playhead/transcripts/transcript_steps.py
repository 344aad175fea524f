"""What an agent's own stream or session file tells: prompts, answers, tools, ends. Data only.

An answer keeps the shape of the API that it came from, so that what decodes and prices a recorded HTTP
exchange does the same for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Union


class SessionStarted(NamedTuple):
    """Who is speaking: the tool's own session, its model and version."""

    tool: str
    session: str | None = None
    model: str | None = None
    cwd: str | None = None
    version: str | None = None
    at: int | None = None


class UserPrompt(NamedTuple):
    """A person, or a program in his place, asked for something."""

    text: str
    at: int | None = None


class AskedTool(NamedTuple):
    """A tool call in an answer."""

    id: str
    name: str
    arguments: Any


class ModelAnswer(NamedTuple):
    """One answer of a model. `sent` and `body` are the request and the response as `api` spells them;
    of the request only what was new. `agent` is the tool call that a sub-agent works for.
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
    """What a tool gave back."""

    id: str
    value: Any
    is_error: bool = False
    at: int | None = None


class SessionNote(NamedTuple):
    """Something on the way that is neither: a retry, a warning, a summary of what was forgotten."""

    kind: str
    data: Mapping[str, Any]
    at: int | None = None


class SessionEnded(NamedTuple):
    """The tool's own word on how it went. `usage` has the names that Playhead uses for tokens."""

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
    """A line for somebody who watches: what the agent does just now."""

    kind: str  # text, delta (a piece of one), thought, tool, failure, retry, end
    text: str


class StreamSummary(NamedTuple):
    """A stream in figures. None: it did not say."""

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

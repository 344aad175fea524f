"""Parse Claude Code's lines: `claude -p --output-format stream-json --verbose`, and its session files.

Each line is one content block: the blocks of one answer share `message.id`, and lines of tools and sub-agents come
in between. An API failure ends in `subtype: success` with `is_error: true`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from playhead.transcripts import transcript_fields as fields
from playhead.transcripts.transcript_steps import (
    AskedTool,
    ModelAnswer,
    ProgressLine,
    SessionEnded,
    SessionNote,
    SessionStarted,
    ToolAnswer,
    TranscriptStep,
    UserPrompt,
)

API = "anthropic.messages"
_NOTED = ("api_retry", "compact_boundary", "task_notification")


class _Message:
    """An answer with the blocks that have arrived so far."""

    def __init__(
        self, number: str, agent: str | None, model: str | None, sent: list[dict[str, Any]],
        at: int | None,
    ) -> None:  # fmt: skip
        self.id = number
        self.agent = agent
        self.model = model
        self.sent = sent
        self.at = self.until = at
        self.content: list[dict[str, Any]] = []
        self.usage: dict[str, Any] = {}
        self.stop: str | None = None
        self.error: str | None = None


class ClaudeReader:
    """Converts lines to steps. Never raises: unknown lines are skipped."""

    tool = "claude"

    def __init__(self) -> None:
        self._order: list[_Message | TranscriptStep] = []
        self._open: dict[str | None, _Message] = {}
        # The messages that each agent's next request sends.
        self._news: dict[str | None, list[dict[str, Any]]] = {}
        self._ended = False

    def feed(self, line: Mapping[str, Any], at: int | None = None) -> list[ProgressLine]:
        kind = fields.of_type(line)
        when = fields.moment_ns(line.get("timestamp"))
        when = at if when is None else when
        if kind == "assistant":
            return self._assistant(line, when)
        if kind == "user":
            return self._user(line, when)
        if kind == "system":
            return self._system(line, when)
        if kind == "result":
            return self._result(line, when)
        if kind == "summary":
            self._order.append(
                SessionNote(kind="agent.summary", data={"text": line.get("summary")}, at=when)
            )
        return []

    def steps(self) -> list[TranscriptStep]:
        return [self._said(one) if isinstance(one, _Message) else one for one in self._order]

    def _assistant(self, line: Mapping[str, Any], at: int | None) -> list[ProgressLine]:
        message = fields.mapping(line.get("message"))
        agent = _agent(line)
        blocks = [one for one in fields.items(message.get("content")) if isinstance(one, dict)]
        number = fields.text(message.get("id"))
        current = self._open.get(agent)
        if current is None or current.id != number:
            news = self._news.pop(agent, [])
            model = fields.maybe(message.get("model"))
            current = _Message(number, agent, model, news, at)
            self._open[agent] = current
            self._order.append(current)
        current.content += blocks
        current.until = at
        current.stop = fields.maybe(message.get("stop_reason")) or current.stop
        current.usage = _larger(current.usage, fields.mapping(message.get("usage")))
        if line.get("is_api_error_message") or line.get("isApiErrorMessage"):
            current.error = _text_of(blocks) or "API error"
        return [glance for block in blocks for glance in _glances(block, current.error)]

    def _user(self, line: Mapping[str, Any], at: int | None) -> list[ProgressLine]:
        message = fields.mapping(line.get("message"))
        content = message.get("content")
        agent = _agent(line)
        glances = []
        if not line.get("isMeta"):
            self._news.setdefault(agent, []).append({"role": "user", "content": content})
        for block in fields.items(content):
            if isinstance(block, dict) and block.get("type") == "tool_result":
                failed = block.get("is_error") is True
                value = _flat(block.get("content"))
                number = fields.text(block.get("tool_use_id"))
                self._order.append(ToolAnswer(id=number, value=value, is_error=failed, at=at))
                if failed:
                    glances.append(ProgressLine(kind="failure", text=fields.short(value)))
        if agent is None and not line.get("isMeta"):
            asked = content if isinstance(content, str) else _text_of(fields.items(content))
            if asked:
                self._order.append(UserPrompt(text=asked, at=at))
        return glances

    def _system(self, line: Mapping[str, Any], at: int | None) -> list[ProgressLine]:
        kind = fields.text(line.get("subtype"))
        if kind == "init":
            self._order.append(
                SessionStarted(
                    tool=self.tool,
                    session=fields.maybe(line.get("session_id")),
                    model=fields.maybe(line.get("model")),
                    cwd=fields.maybe(line.get("cwd")),
                    version=fields.maybe(line.get("claude_code_version")),
                    at=at,
                )
            )
        elif kind in _NOTED:
            kept = {name: value for name, value in line.items() if name not in _ENVELOPE}
            self._order.append(SessionNote(kind=f"agent.{kind}", data=kept, at=at))
            if kind == "api_retry":
                said = f"attempt {line.get('attempt')}: {line.get('error') or line.get('error_status')}"
                return [ProgressLine(kind="retry", text=said)]
        return []

    def _result(self, line: Mapping[str, Any], at: int | None) -> list[ProgressLine]:
        said = fields.text(line.get("result"))
        subtype = fields.text(line.get("subtype"))
        failed = line.get("is_error") is True or subtype.startswith("error")
        errors = [fields.text(one) for one in fields.items(line.get("errors"))]
        error = (said or "; ".join(filter(None, errors)) or subtype or "error") if failed else None
        cost = fields.number(line.get("total_cost_usd"))
        turns = fields.count(line.get("num_turns")) or None
        self._ended = True
        self._order.append(
            SessionEnded(
                ok=not failed,
                text=said,
                error=error,
                usage=usage_of(fields.mapping(line.get("usage"))),
                cost_usd=cost,
                turns=turns,
                at=at,
            )
        )
        return [ProgressLine(kind="failure" if failed else "end", text=fields.short(error or ""))]

    def _said(self, message: _Message) -> ModelAnswer:
        # In a stream, the usage of an answer is that of its beginning (one token of output); the totals are in
        # `result`. Counting both would count input tokens twice.
        usage = {} if self._ended else message.usage
        body = {
            "type": "message",
            "id": message.id,
            "role": "assistant",
            "model": message.model,
            "content": message.content,
            "stop_reason": message.stop,
            **({"usage": usage} if usage else {}),
        }
        return ModelAnswer(
            api=API,
            model=message.model,
            sent={"model": message.model, "messages": message.sent},
            body=body,
            text=_text_of(message.content),
            asked=tuple(_asked(message.content)),
            agent=message.agent,
            error=message.error,
            at=message.at,
            until=message.until,
        )


_ENVELOPE = ("type", "subtype", "session_id", "uuid", "timestamp")


def usage_of(usage: Mapping[str, Any]) -> dict[str, int]:
    """Return Anthropic's counts in normalised form: input includes the caches."""
    if not usage:
        return {}
    read = fields.count(usage.get("cache_read_input_tokens"))
    written = fields.count(usage.get("cache_creation_input_tokens"))
    return {
        "input_tokens": fields.count(usage.get("input_tokens")) + read + written,
        "output_tokens": fields.count(usage.get("output_tokens")),
        "cache_read_tokens": read,
        "cache_write_tokens": written,
    }


def _larger(known: dict[str, Any], reported: dict[str, Any]) -> dict[str, Any]:
    """Merge the usage of an answer's lines, which grows: the last complete one counts."""
    before, now = (fields.count(one.get("output_tokens")) for one in (known, reported))
    return reported if reported and now >= before else known


def _agent(line: Mapping[str, Any]) -> str | None:
    return fields.maybe(line.get("parent_tool_use_id"))


def _asked(content: list[dict[str, Any]]) -> list[AskedTool]:
    return [
        AskedTool(
            id=fields.text(one.get("id")),
            name=fields.text(one.get("name")),
            arguments=one.get("input"),
        )
        for one in content
        if one.get("type") == "tool_use"
    ]


def _text_of(content: list[Any]) -> str:
    return "".join(
        fields.text(one.get("text"))
        for one in content
        if isinstance(one, dict) and one.get("type") == "text"
    )


def _flat(content: Any) -> Any:
    """Return a result that contains only text as that text."""
    blocks = fields.items(content)
    if blocks and all(isinstance(one, dict) and one.get("type") == "text" for one in blocks):
        return _text_of(blocks)
    return content


def _glances(block: Mapping[str, Any], error: str | None) -> list[ProgressLine]:
    kind = block.get("type")
    if kind == "text":
        return [
            ProgressLine(kind="failure" if error else "text", text=fields.text(block.get("text")))
        ]
    if kind == "thinking":
        return [ProgressLine(kind="thought", text=fields.text(block.get("thinking")))]
    if kind == "tool_use":
        shown = _shown(block.get("input"))
        return [ProgressLine(kind="tool", text=f"{fields.text(block.get('name'))}({shown})")]
    return []


def _shown(arguments: Any) -> str:
    values = arguments.values() if isinstance(arguments, dict) else [arguments]
    return fields.short(", ".join(str(one) for one in values if one is not None))

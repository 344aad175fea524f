"""Parse `codex exec --json`: threads, turns and items. Session files are parsed in `codex_files`.

The stream names no model and reports usage once per turn. An item is a whole answer or a whole tool call: text
between two tools is assembled here.
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
)

API = "openai.responses"
# item type → (name of the tool, the members that are its arguments, those that are its result).
_TOOLS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "command_execution": ("shell", ("command",), ("aggregated_output", "exit_code")),
    "file_change": ("apply_patch", ("changes",), ("status",)),
    "mcp_tool_call": ("mcp", ("arguments",), ("result", "error")),
    "web_search": ("web_search", ("query",), ("status",)),
    "collab_tool_call": ("agent", ("prompt", "tool"), ("status",)),
}


class CodexReader:
    """Converts lines to steps. Never raises: unknown lines are skipped."""

    tool = "codex"

    def __init__(self) -> None:
        self._order: list[TranscriptStep] = []
        self._begun: dict[str, int | None] = {}
        self._thread: str | None = None
        self._news: list[dict[str, Any]] = []
        self._error: str | None = None

    def feed(self, line: Mapping[str, Any], at: int | None = None) -> list[ProgressLine]:
        kind = fields.of_type(line)
        if kind == "thread.started":
            self._thread = fields.maybe(line.get("thread_id"))
            self._order.append(SessionStarted(tool=self.tool, session=self._thread, at=at))
        elif kind == "item.started":
            item = fields.mapping(line.get("item"))
            self._begun[fields.text(item.get("id"))] = at
            return _started(item)
        elif kind == "item.completed":
            return self._completed(fields.mapping(line.get("item")), at)
        elif kind == "turn.completed":
            usage = usage_of(fields.mapping(line.get("usage")))
            self._order.append(SessionEnded(ok=True, text=self._last_text(), usage=usage, at=at))
            return [ProgressLine(kind="end", text="")]
        elif kind == "turn.failed":
            error = fields.text(fields.mapping(line.get("error")).get("message"))
            self._order.append(
                SessionEnded(ok=False, error=error or self._error or "failed", at=at)
            )
            return [ProgressLine(kind="failure", text=error)]
        elif kind == "error":
            self._error = fields.text(line.get("message"))
            self._order.append(
                SessionNote(kind="agent.error", data={"message": self._error}, at=at)
            )
            return [ProgressLine(kind="retry", text=self._error)]
        return []

    def steps(self) -> list[TranscriptStep]:
        return list(self._order)

    def _completed(self, item: Mapping[str, Any], at: int | None) -> list[ProgressLine]:
        kind = fields.of_type(item)
        number = fields.text(item.get("id"))
        began = self._begun.get(number, at)
        if kind == "agent_message":
            said = fields.text(item.get("text"))
            self._say([message(said)], text=said, asked=(), at=began, until=at)
            return [ProgressLine(kind="text", text=said)]
        if kind == "reasoning":
            thought = fields.text(item.get("text"))
            self._say([reasoning(thought)], text="", asked=(), at=began, until=at)
            return [ProgressLine(kind="thought", text=thought)]
        if kind == "error":
            said = fields.text(item.get("message"))
            self._order.append(SessionNote(kind="agent.error", data={"message": said}, at=at))
            return [ProgressLine(kind="failure", text=said)]
        if kind in _TOOLS:
            return self._tool(kind, item, began, at)
        if kind:
            rest = {name: value for name, value in item.items() if name not in ("id", "type")}
            self._order.append(SessionNote(kind=f"agent.{kind}", data=rest, at=at))
        return []

    def _tool(
        self, kind: str, item: Mapping[str, Any], began: int | None, at: int | None
    ) -> list[ProgressLine]:
        name, asks, gives = _TOOLS[kind]
        if kind == "mcp_tool_call":
            name = f"{fields.text(item.get('server'))}.{fields.text(item.get('tool'))}"
        number = fields.text(item.get("id"))
        arguments = {one: item[one] for one in asks if one in item}
        asked = AskedTool(id=number, name=name, arguments=arguments)
        self._say([function_call(asked)], text="", asked=(asked,), at=began, until=began)
        members = {one: item[one] for one in gives if item.get(one) is not None}
        code = item.get("exit_code")
        failed = item.get("status") == "failed" or (isinstance(code, int) and code != 0)
        value = members.get("aggregated_output") if kind == "command_execution" else members
        self._order.append(ToolAnswer(id=number, value=value, is_error=failed, at=at))
        self._news.append({"type": "function_call_output", "call_id": number, "output": value})
        if number in self._begun:  # it was shown when it began
            return [ProgressLine(kind="failure", text=f"{name} failed")] if failed else []
        return _started(item)

    def _say(
        self,
        output: list[dict[str, Any]],
        *,
        text: str,
        asked: tuple[AskedTool, ...],
        at: int | None,
        until: int | None,
    ) -> None:
        """Add a part to the previous answer, or start a new one if a result has come back since."""
        last = self._order[-1] if self._order else None
        if isinstance(last, ModelAnswer) and not self._news:
            self._order.pop()
            output = [*last.body["output"], *output]
            text, asked, at = (
                "\n".join(filter(None, (last.text, text))),
                last.asked + asked,
                last.at,
            )
            sent: Mapping[str, Any] = last.sent
        else:
            sent, self._news = {"input": self._news}, []
        body = {"object": "response", "status": "completed", "output": output}
        self._order.append(
            ModelAnswer(
                api=API,
                model=None,
                sent=sent,
                body=body,
                text=text,
                asked=asked,
                at=at,
                until=until,
            )
        )

    def _last_text(self) -> str:
        texts = (
            one.text for one in reversed(self._order) if isinstance(one, ModelAnswer) and one.text
        )
        return next(texts, "")


def usage_of(usage: Mapping[str, Any]) -> dict[str, int]:
    if not usage:
        return {}
    return {
        "input_tokens": fields.count(usage.get("input_tokens")),
        "output_tokens": fields.count(usage.get("output_tokens")),
        "cache_read_tokens": fields.count(usage.get("cached_input_tokens")),
    }


def message(said: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": said}]
    return {"type": "message", "role": "assistant", "content": content}


def reasoning(thought: str) -> dict[str, Any]:
    return {"type": "reasoning", "summary": [{"type": "summary_text", "text": thought}]}


def function_call(asked: AskedTool) -> dict[str, Any]:
    return {
        "type": "function_call",
        "call_id": asked.id,
        "name": asked.name,
        "arguments": fields.spelled(asked.arguments),
    }


def _started(item: Mapping[str, Any]) -> list[ProgressLine]:
    kind = fields.of_type(item)
    if kind not in _TOOLS:
        return []
    name, asks, _ = _TOOLS[kind]
    shown = fields.short(", ".join(str(item[one]) for one in asks if item.get(one)))
    return [ProgressLine(kind="tool", text=f"{name}({shown})")]

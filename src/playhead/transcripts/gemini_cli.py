"""Gemini CLI's `--output-format stream-json`. Knows its six kinds of lines; not where they come from."""

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

API = "gemini.generate"


class _Answer:
    """An answer as received so far: text arrives in pieces, tool calls one by one."""

    def __init__(self, sent: list[dict[str, Any]], at: int | None) -> None:
        self.sent = sent
        self.at = self.until = at
        self.text = ""
        self.asked: list[AskedTool] = []


class GeminiReader:
    """Converts lines to steps. Never raises: unknown lines are skipped."""

    tool = "gemini"

    def __init__(self) -> None:
        self._order: list[_Answer | TranscriptStep] = []
        self._open: _Answer | None = None
        self._news: list[dict[str, Any]] = []
        self._names: dict[str, str] = {}
        self._model: str | None = None

    def feed(self, line: Mapping[str, Any], at: int | None = None) -> list[ProgressLine]:
        kind = fields.of_type(line)
        when = fields.moment_ns(line.get("timestamp"))
        when = at if when is None else when
        if kind == "init":
            self._model = fields.maybe(line.get("model"))
            session = fields.maybe(line.get("session_id"))
            self._order.append(
                SessionStarted(tool=self.tool, session=session, model=self._model, at=when)
            )
        elif kind == "message":
            return self._message(line, when)
        elif kind == "tool_use":
            return self._tool_use(line, when)
        elif kind == "tool_result":
            return self._tool_result(line, when)
        elif kind == "error":
            said = fields.text(line.get("message"))
            data = {"message": said, "severity": line.get("severity")}
            self._order.append(SessionNote(kind="agent.error", data=data, at=when))
            return [ProgressLine(kind="retry", text=said)]
        elif kind == "result":
            return self._result(line, when)
        return []

    def steps(self) -> list[TranscriptStep]:
        return [self._said(one) if isinstance(one, _Answer) else one for one in self._order]

    def _message(self, line: Mapping[str, Any], at: int | None) -> list[ProgressLine]:
        said = fields.text(line.get("content"))
        if line.get("role") == "user":
            self._open = None
            self._order.append(UserPrompt(text=said, at=at))
            self._news.append({"role": "user", "parts": [{"text": said}]})
            return []
        answer = self._answer(at)
        answer.text += said
        return [ProgressLine(kind="delta" if line.get("delta") else "text", text=said)]

    def _tool_use(self, line: Mapping[str, Any], at: int | None) -> list[ProgressLine]:
        name = fields.text(line.get("tool_name"))
        number = fields.text(line.get("tool_id"))
        self._names[number] = name
        arguments = line.get("parameters")
        self._answer(at).asked.append(AskedTool(id=number, name=name, arguments=arguments))
        shown = fields.short(", ".join(map(str, fields.mapping(arguments).values())))
        return [ProgressLine(kind="tool", text=f"{name}({shown})")]

    def _tool_result(self, line: Mapping[str, Any], at: int | None) -> list[ProgressLine]:
        self._open = None
        number = fields.text(line.get("tool_id"))
        failed = line.get("status") == "error"
        error = fields.mapping(line.get("error")).get("message")
        value = error if failed and error else line.get("output")
        self._order.append(ToolAnswer(id=number, value=value, is_error=failed, at=at))
        response = {"name": self._names.get(number, ""), "response": {"output": value}}
        self._news.append({"role": "user", "parts": [{"functionResponse": response}]})
        return [ProgressLine(kind="failure", text=fields.short(value))] if failed else []

    def _result(self, line: Mapping[str, Any], at: int | None) -> list[ProgressLine]:
        failed = line.get("status") not in ("success", None)
        error = fields.text(fields.mapping(line.get("error")).get("message")) if failed else ""
        stats = fields.mapping(line.get("stats"))
        usage = {
            "input_tokens": fields.count(stats.get("input_tokens")),
            "output_tokens": fields.count(stats.get("output_tokens")),
            "cache_read_tokens": fields.count(stats.get("cached")),
        }
        self._order.append(
            SessionEnded(
                ok=not failed,
                error=error or "failed" if failed else None,
                usage=usage if stats else {},
                at=at,
            )
        )
        return [ProgressLine(kind="failure" if failed else "end", text=error)]

    def _answer(self, at: int | None) -> _Answer:
        if self._open is None:
            self._open = _Answer(self._news, at)
            self._news = []
            self._order.append(self._open)
        self._open.until = at
        return self._open

    def _said(self, answer: _Answer) -> ModelAnswer:
        parts: list[dict[str, Any]] = [{"text": answer.text}] if answer.text else []
        parts += [{"functionCall": {"name": a.name, "args": a.arguments}} for a in answer.asked]
        content = {"role": "model", "parts": parts}
        return ModelAnswer(
            api=API,
            model=self._model,
            sent={"contents": answer.sent},
            body={"candidates": [{"content": content}], "modelVersion": self._model},
            text=answer.text,
            asked=tuple(answer.asked),
            at=answer.at,
            until=answer.until,
        )

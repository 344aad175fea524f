"""Codex's session files (`~/.codex/sessions/**/rollout-*.jsonl`). Knows their lines: `session_meta`,
`turn_context`, `response_item`, `event_msg`; older files hold bare items.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from playhead.transcripts import transcript_fields as fields
from playhead.transcripts.transcript_steps import (
    AskedTool,
    ModelAnswer,
    ProgressLine,
    SessionNote,
    SessionStarted,
    ToolAnswer,
    TranscriptStep,
    UserPrompt,
)

API = "openai.responses"
_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call")
_RESULTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
# Codex describes its environment to the model in user messages.
_SURROUNDINGS = ("<environment_context>", "<user_instructions>", "# AGENTS.md", "<permissions")


class RolloutReader:
    """Converts lines to steps. Never raises: unknown lines are skipped."""

    tool = "codex"

    def __init__(self) -> None:
        self._order: list[TranscriptStep] = []
        self._news: list[dict[str, Any]] = []
        self._model: str | None = None

    def feed(self, line: Mapping[str, Any], at: int | None = None) -> list[ProgressLine]:
        when = fields.moment_ns(line.get("timestamp"))
        when = at if when is None else when
        kind = fields.of_type(line)
        payload = fields.mapping(line.get("payload"))
        if kind == "session_meta":
            self._began(payload, when)
        elif kind == "turn_context":
            self._model = fields.maybe(payload.get("model")) or self._model
        elif kind == "response_item":
            self._item(payload, when)
        elif kind == "event_msg":
            self._event(payload, when)
        elif kind == "compacted":
            self._order.append(
                SessionNote(kind="agent.compacted", data={"text": payload.get("message")}, at=when)
            )
        elif "payload" not in line:
            self._item(line, when)
        return []

    def steps(self) -> list[TranscriptStep]:
        return list(self._order)

    def _began(self, meta: Mapping[str, Any], at: int | None) -> None:
        self._order.append(
            SessionStarted(
                tool=self.tool,
                session=fields.maybe(meta.get("id")),
                cwd=fields.maybe(meta.get("cwd")),
                version=fields.maybe(meta.get("cli_version")),
                at=at,
            )
        )

    def _item(self, item: Mapping[str, Any], at: int | None) -> None:
        kind = fields.of_type(item)
        if kind == "message":
            self._message(item, at)
        elif kind == "reasoning":
            self._say(dict(item), "", (), at)
        elif kind in _CALLS:
            asked = _asked(item)
            call = {
                "type": "function_call",
                "call_id": asked.id,
                "name": asked.name,
                "arguments": fields.spelled(asked.arguments),
            }
            self._say(call, "", (asked,), at)
        elif kind in _RESULTS:
            number = fields.text(item.get("call_id"))
            value, failed = _result(item.get("output"))
            self._order.append(ToolAnswer(id=number, value=value, is_error=failed, at=at))
            self._news.append({"type": "function_call_output", "call_id": number, "output": value})

    def _message(self, item: Mapping[str, Any], at: int | None) -> None:
        said = "".join(
            fields.text(part.get("text"))
            for part in fields.items(item.get("content"))
            if isinstance(part, dict)
        )
        if item.get("role") == "assistant":
            self._say(dict(item), said, (), at)
            return
        self._news.append(dict(item))
        if item.get("role") == "user" and not said.lstrip().startswith(_SURROUNDINGS):
            self._order.append(UserPrompt(text=said, at=at))

    def _event(self, event: Mapping[str, Any], at: int | None) -> None:
        kind = fields.of_type(event)
        if kind == "token_count":
            info = fields.mapping(event.get("info"))
            self._count(fields.mapping(info.get("last_token_usage")))
        elif kind in ("error", "stream_error", "turn_aborted"):
            data = {"message": event.get("message") or event.get("reason")}
            self._order.append(SessionNote(kind=f"agent.{kind}", data=data, at=at))

    def _count(self, usage: Mapping[str, Any]) -> None:
        """Add usage, which arrives in a separate line after its answer."""
        if not usage:
            return
        for place in range(len(self._order) - 1, -1, -1):
            said = self._order[place]
            if isinstance(said, ModelAnswer):
                if "usage" in said.body:
                    return  # reported twice: lines with rate limits have the same kind
                details = {"cached_tokens": fields.count(usage.get("cached_input_tokens"))}
                counts = {
                    "input_tokens": fields.count(usage.get("input_tokens")),
                    "input_tokens_details": details,
                    "output_tokens": fields.count(usage.get("output_tokens")),
                }
                self._order[place] = said._replace(body={**said.body, "usage": counts})
                return

    def _say(
        self, output: dict[str, Any], text: str, asked: tuple[AskedTool, ...], at: int | None
    ) -> None:
        last = self._order[-1] if self._order else None
        if isinstance(last, ModelAnswer) and not self._news and "usage" not in last.body:
            whole = {**last.body, "output": [*last.body["output"], output]}
            self._order[-1] = last._replace(
                body=whole, text=last.text + text, asked=last.asked + asked, until=at
            )
            return
        sent, self._news = self._news, []
        body = {
            "object": "response",
            "status": "completed",
            "model": self._model,
            "output": [output],
        }
        self._order.append(
            ModelAnswer(
                api=API,
                model=self._model,
                sent={"model": self._model, "input": sent},
                body=body,
                text=text,
                asked=asked,
                at=at,
                until=at,
            )
        )


def _asked(item: Mapping[str, Any]) -> AskedTool:
    number = fields.text(item.get("call_id")) or fields.text(item.get("id"))
    kind = fields.of_type(item)
    if kind == "local_shell_call":
        return AskedTool(id=number, name="shell", arguments=item.get("action"))
    if kind == "web_search_call":
        return AskedTool(id=number, name="web_search", arguments=item.get("action"))
    arguments = item.get("arguments") if kind == "function_call" else item.get("input")
    return AskedTool(
        id=number, name=fields.text(item.get("name")), arguments=fields.parsed(arguments)
    )


def _result(output: Any) -> tuple[Any, bool]:
    """Return the result of a tool: text, or JSON in text with output and exit code."""
    members = fields.parsed(output)
    if isinstance(members, dict):
        meta = fields.mapping(members.get("metadata"))
        failed = members.get("success") is False or bool(meta.get("exit_code"))
        for name in ("output", "content"):
            if name in members:
                return members[name], failed
        return members, failed
    return output, False

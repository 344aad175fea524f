"""Recognise the output of a coding agent and parse its lines. The format of each tool is in a module of its own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from playhead.host.later import Later
from playhead.transcripts import transcript_fields as fields
from playhead.transcripts.transcript_steps import ProgressLine, TranscriptStep

if TYPE_CHECKING:
    from playhead.transcripts import claude_code, codex, gemini_cli
else:  # a step of a shell script starts a process, and reads the output of one tool at most
    claude_code = Later("playhead.transcripts.claude_code")
    codex = Later("playhead.transcripts.codex")
    gemini_cli = Later("playhead.transcripts.gemini_cli")

# A program without a recognised line in this many lines is not a known agent.
_PATIENCE = 50
# Longer lines are not messages, and are not buffered.
_LONGEST = 64 * 1024 * 1024


class TranscriptReader(Protocol):
    """The interface of a tool's module."""

    @property
    def tool(self) -> str: ...
    def feed(self, line: Mapping[str, Any], at: int | None = None) -> list[ProgressLine]: ...
    def steps(self) -> list[TranscriptStep]: ...


def reader_of(line: Mapping[str, Any]) -> TranscriptReader | None:
    """Return the reader for this first line; None: an unknown format."""
    kind = fields.of_type(line)
    if kind == "thread.started" or kind.startswith(("turn.", "item.")):
        return codex.CodexReader()
    if kind == "init" and "session_id" in line:
        return gemini_cli.GeminiReader()
    if "session_id" not in line and "sessionId" not in line:
        return None
    if kind in ("system", "assistant", "user", "result", "rate_limit_event"):
        return claude_code.ClaudeReader()
    return None


class JsonLines:
    """Splits bytes that arrive in pieces into JSON objects; other lines are skipped."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, raw: bytes) -> list[dict[str, Any]]:
        whole, newline, rest = (self._rest + raw).rpartition(b"\n")
        self._rest = rest if len(rest) < _LONGEST else b""
        return list(objects(whole.split(b"\n"))) if newline else []

    def close(self) -> list[dict[str, Any]]:
        """Return the last line, unless it is torn."""
        rest, self._rest = self._rest, b""
        return list(objects([rest]))


def objects(lines: Iterable[bytes]) -> Iterable[dict[str, Any]]:
    for line in lines:
        if line.lstrip()[:1] != b"{":
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found


class AgentStream:
    """Parses a program's stdout. Produces nothing until an agent is recognised."""

    def __init__(self) -> None:
        self.reader: TranscriptReader | None = None
        self._lines = JsonLines()
        self._patience = _PATIENCE

    @property
    def tool(self) -> str | None:
        return None if self.reader is None else self.reader.tool

    def feed(self, raw: bytes, at: int | None = None) -> list[ProgressLine]:
        if self.reader is None and not self._patience:
            return []
        return self._hear(self._lines.feed(raw), at, raw.count(b"\n"))

    def close(self, at: int | None = None) -> list[TranscriptStep]:
        """Return all steps."""
        self._hear(self._lines.close(), at, 0)
        return [] if self.reader is None else self.reader.steps()

    def _hear(self, lines: list[dict[str, Any]], at: int | None, count: int) -> list[ProgressLine]:
        glances: list[ProgressLine] = []
        for line in lines:
            if self.reader is None:
                self.reader = reader_of(line)
            if self.reader is not None:
                glances += self.reader.feed(line, at)
        if self.reader is None:
            self._patience = max(0, self._patience - count)
        return glances

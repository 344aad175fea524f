"""Bytes of a program's output to what an agent says in them, if it is an agent that speaks. Knows lines
and who is who; the words of each tool are in its own module.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from playhead.transcripts import transcript_fields as fields
from playhead.transcripts.claude_code import ClaudeReader
from playhead.transcripts.codex import CodexReader
from playhead.transcripts.gemini_cli import GeminiReader
from playhead.transcripts.transcript_steps import ProgressLine, TranscriptStep

# A program that has said nothing of this kind in so many lines is no agent that we know.
_PATIENCE = 50
# Longer lines are no messages; they are not held in memory to find that out.
_LONGEST = 64 * 1024 * 1024


class TranscriptReader(Protocol):
    """What each tool's module offers."""

    @property
    def tool(self) -> str: ...
    def feed(self, line: Mapping[str, Any], at: int | None = None) -> list[ProgressLine]: ...
    def steps(self) -> list[TranscriptStep]: ...


def reader_of(line: Mapping[str, Any]) -> TranscriptReader | None:
    """Who speaks so; None: nobody that we know."""
    kind = fields.of_type(line)
    if kind == "thread.started" or kind.startswith(("turn.", "item.")):
        return CodexReader()
    if kind == "init" and "session_id" in line:
        return GeminiReader()
    if "session_id" not in line and "sessionId" not in line:
        return None
    if kind in ("system", "assistant", "user", "result", "rate_limit_event"):
        return ClaudeReader()
    return None


class JsonLines:
    """JSON objects out of bytes that come in pieces. What is none is passed over."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, raw: bytes) -> list[dict[str, Any]]:
        whole, newline, rest = (self._rest + raw).rpartition(b"\n")
        self._rest = rest if len(rest) < _LONGEST else b""
        return list(objects(whole.split(b"\n"))) if newline else []

    def close(self) -> list[dict[str, Any]]:
        """The last line may lack its end, or be torn: then it is none."""
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
    """Follows a program's stdout. Until an agent is recognised, nothing is told."""

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
        """Everything that was said."""
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

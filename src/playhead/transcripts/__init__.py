"""Parse the streams on stdout and the session files of coding agents into steps. Guest code; never raises."""

from playhead.transcripts.transcript_lines import AgentStream, reader_of
from playhead.transcripts.transcript_steps import (
    AskedTool,
    ModelAnswer,
    ProgressLine,
    SessionEnded,
    SessionNote,
    SessionStarted,
    StreamSummary,
    ToolAnswer,
    TranscriptStep,
    UserPrompt,
    conversation,
    outline,
)

__all__ = [
    "AgentStream",
    "AskedTool",
    "ModelAnswer",
    "ProgressLine",
    "SessionEnded",
    "SessionNote",
    "SessionStarted",
    "StreamSummary",
    "ToolAnswer",
    "TranscriptStep",
    "UserPrompt",
    "conversation",
    "outline",
    "reader_of",
]

"""What coding agents say of themselves: their streams on stdout and the session files they keep, as steps
that become events of a run. Standard library only, never raises over a stranger's lines.
"""

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
    "outline",
    "reader_of",
]

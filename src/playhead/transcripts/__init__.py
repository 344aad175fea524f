"""What coding agents say of themselves: their streams on stdout and the session files they keep, as steps
that become events of a run. Standard library only, never raises over a stranger's lines.
"""

from playhead.transcripts.reading import AgentStream, reader_of
from playhead.transcripts.transcript_steps import (
    Answered,
    Asked,
    Began,
    Ended,
    Glance,
    Noted,
    Outline,
    Prompted,
    Said,
    Step,
    outline,
)

__all__ = [
    "AgentStream",
    "Answered",
    "Asked",
    "Began",
    "Ended",
    "Glance",
    "Noted",
    "Outline",
    "Prompted",
    "Said",
    "Step",
    "outline",
    "reader_of",
]

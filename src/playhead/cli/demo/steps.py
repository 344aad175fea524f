"""What the demo shows, one step after the other. Add a step here. Knows commands; runs none."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A command as a person would type it, why, and how it should end.

    `online`: the model and the gateway are there; otherwise they are switched off.
    """

    title: str
    words: tuple[str, ...]
    exit_code: int = 0
    online: bool = False


STEPS = (
    Step(
        title="Record a real agent: every LLM call, tool, subprocess and HTTP exchange.",
        words=("playhead", "record", "--name", "refund-agent", "--", "python", "refund_agent.py"),
        online=True,
    ),
    Step(title="The run at a glance.", words=("playhead", "show", "last")),
    Step(
        title="The same run as it happened, eight times as fast.",
        words=("playhead", "play", "last", "--speed", "8", "--max-wait", "500ms", "--no-output"),
    ),
    Step(title="Is the tape what was recorded?", words=("playhead", "verify", "last")),
    Step(
        title="Run the agent again with the model switched off: the tape answers.",
        words=("playhead", "replay", "last"),
    ),
    Step(
        title="An orchestrator with a bus of its own, recorded by one line: playhead.tap(bus).",
        words=("python", "orchestrator.py"),
    ),
    Step(
        title="What it emitted is on the tape.",
        words=("playhead", "events", "last", "--pretty", "--kind", "*:*"),
    ),
    Step(
        title="A job whose turn fails…",
        words=("python", "digest.py"),
        exit_code=1,
    ),
    Step(title="…and how far it had come.", words=("playhead", "show", "last")),
    Step(title="All of them.", words=("playhead", "list")),
)

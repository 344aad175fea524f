"""The files that `playhead promote` writes: a test that replays a tape, and plain fixtures. Pure."""

from __future__ import annotations

import dataclasses
import shlex
from typing import Any

from playhead.story import Story
from playhead.tape.manifest import Manifest


def fixtures_of(story: Story) -> dict[str, Any]:
    """Return the contents by file name."""
    calls = story.calls()
    tools = [
        {
            "name": call.name,
            "arguments": (call.request or {}).get("arguments"),
            "result": call.value,
            "how": call.how,
        }
        for call in calls
        if call.boundary in ("tool", "mcp") and isinstance(call.request, dict)
    ]
    responses = [
        {
            "model": one.response.model,
            "text": one.response.text,
            "tool_calls": [dataclasses.asdict(use) for use in one.response.tool_calls],
            "stop_reason": one.response.stop_reason,
            "usage": None if one.response.usage is None else dataclasses.asdict(one.response.usage),
        }
        for call in calls
        for one in call.llm
        if one.response is not None
    ]
    turns = [
        {
            "name": turn.name,
            "input": turn.input,
            "value": turn.value,
            "how": turn.how,
            "took_ns": turn.took_ns,
            "error": None if turn.failure is None else dataclasses.asdict(turn.failure),
            "last_seam": turn.last_seam,
            "seams": [
                {
                    "name": seam.name,
                    "at_ns": seam.at_ns,
                    "took_ns": seam.took_ns,
                    "value": seam.value,
                }
                for seam in turn.seams
            ],
        }
        for turn in story.turns()
    ]
    return {"tool_calls.json": tools, "llm_responses.json": responses, "turns.json": turns}


_TEMPLATE = '''"""Made by `playhead promote` from run {run}: {command}"""

from pathlib import Path

from playhead.testing import replay

TAPE = Path(__file__).parent / "tapes" / "{name}.tape.jsonl"


def test_{name}_replays_identically():
    """The agent of today asks the world for what it asked then, and prints the same."""
    report = replay(TAPE)
    assert report["verdict"] == "identical", report["first_divergence"]
'''


def test_source(name: str, manifest: Manifest) -> str:
    command = shlex.join(manifest.command).replace("\\", "/").replace('"', "'")
    return _TEMPLATE.format(name=name, run=manifest.run, command=command[:200])

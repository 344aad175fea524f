"""The files that `playhead promote` writes: a test that replays a tape, and plain fixtures. Pure."""

from __future__ import annotations

import dataclasses
import os
import shlex
from pathlib import Path
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

from playhead.testing import explain, replay

TAPE = Path(__file__).parent / "tapes" / "{name}.tape.jsonl"
{folder}

def test_{name}_replays_identically():
    """The agent makes the recorded calls and prints the recorded output."""
    report = replay({arguments})
    assert report["verdict"] == "identical", explain(report)
'''


# The folder of the recorded command, so that the test runs from any folder.
_FOLDER = "FOLDER = Path(__file__).parents[{above}]{below}\n"


def test_source(name: str, manifest: Manifest, target: Path) -> str:
    """Return the source of the test for the folder `target`. The command of the tape runs in the folder in which it
    was recorded, if that is in the same project.
    """
    command = shlex.join(manifest.command).replace("\\", "/").replace('"', "'")
    folder = _folder_of(manifest, target.absolute())
    return _TEMPLATE.format(
        name=name,
        run=manifest.run,
        command=command[:200],
        folder=folder,
        arguments="TAPE, cwd=FOLDER" if folder else "TAPE",
    )


def _folder_of(manifest: Manifest, target: Path) -> str:
    if not manifest.cwd or not manifest.project:
        return ""
    project, cwd = Path(manifest.project), Path(manifest.cwd)
    if not target.is_relative_to(project) or not cwd.is_relative_to(project):
        return ""
    above, *below = (
        Path(os.path.relpath(project, target / "test.py")).parts,
        *cwd.relative_to(project).parts,
    )
    return _FOLDER.format(
        above=len(above) - 1, below="".join(f" / {one!r}".replace("'", '"') for one in below)
    )

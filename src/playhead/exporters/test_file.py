"""Write the source of a test that replays a tape. Pure."""

from __future__ import annotations

import shlex

from playhead.tape.manifest import Manifest

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

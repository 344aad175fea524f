"""The tests of hooks whose frameworks need an environment of their own, run in it."""

import os
import subprocess
from pathlib import Path

import pytest

from playhead.recording import deck

# Each agent is started three times, and some take seconds to import.
pytestmark = [pytest.mark.agents, pytest.mark.timeout(400)]

UNIT = "tests/unit/boundaries"
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("environment_name", "files"),
    [
        ("sdks", ["test_openai_agents.py"]),
        ("litellm", ["test_smolagents.py"]),
        ("crewai", ["test_crewai.py", "test_mcp_client.py", "test_mcp_transport.py"]),
        ("claude", ["test_claude_agent_sdk.py"]),
    ],
)
def test_hooks_hold_where_their_frameworks_live(environment, environment_name, files):
    """mcp 1.x is there with CrewAI, so the tests of MCP run a second time."""
    python = environment(environment_name).bin / "python"
    source = str(Path(deck.__file__).parents[1])
    settings = ["-o", "filterwarnings=default", "-o", "addopts=--import-mode=importlib"]
    ended = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *settings]
        + [f"{UNIT}/{file}" for file in files],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": source, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr

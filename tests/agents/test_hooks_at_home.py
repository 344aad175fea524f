"""The tests of hooks whose frameworks need an environment of their own, run in it."""

import os
import subprocess
from pathlib import Path

import pytest

import playhead

# Each agent is started three times, and some take seconds to import.
pytestmark = [pytest.mark.agents, pytest.mark.timeout(400)]

UNIT = "tests/unit/hooks"
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("environment_name", "files"),
    [
        ("sdks", ["tools/test_openai_agents.py"]),
        ("litellm", ["tools/test_smolagents_tools.py"]),
        (
            "crewai",
            ["tools/test_crewai_tools.py", "mcp/test_mcp_client.py", "mcp/test_mcp_transport.py"],
        ),
        ("claude", ["tools/test_claude_agent_sdk.py"]),
    ],
)
def test_hooks_hold_where_their_frameworks_live(environment, environment_name, files):
    """mcp 1.x is there with CrewAI, so the tests of MCP run a second time."""
    python = environment(environment_name).bin / "python"
    source = str(Path(playhead.__file__).parents[1])
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

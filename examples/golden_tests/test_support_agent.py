"""A recorded run as a test: the tape answers in place of the model and of every program that is started. No
key, no network, no cost.

    pytest examples/golden_tests
    pytest examples/golden_tests --playhead=refresh      # record it anew, with a key or a scripted model
"""

import runpy
from pathlib import Path

import pytest

AGENT = Path(__file__).parents[1] / "support_agent" / "agent.py"


@pytest.mark.playhead("late_order")
def test_a_late_order_is_handed_to_a_person(playhead_run, monkeypatch):
    # The SDK wants a key to be set; from a tape, nothing is sent.
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    agent = runpy.run_path(str(AGENT))
    said = agent["answer"]("Where is order A-17?")
    assert "late" in said
    assert playhead_run.cost_usd < 0.05
    assert [call.boundary for call in playhead_run.calls] == ["llm", "llm", "process", "llm"]

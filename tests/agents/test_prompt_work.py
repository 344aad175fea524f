"""Another prompt for agents on frameworks: the model is asked anew, their tools are never run."""

import json

import pytest

from playhead.replay.matching.taped import load
from playhead.testing import ScriptedLLM

# Each agent is started three times, and some take seconds to import.
pytestmark = [pytest.mark.agents, pytest.mark.timeout(400)]

FRAMEWORKS = ["openai_agents_app.py", "langgraph_app.py", "pydantic_ai_app.py", "mcp_anthropic.py"]


@pytest.fixture(params=FRAMEWORKS, ids=lambda name: name.removesuffix(".py"))
def run(request, record, shop):
    return record("sdks", request.param, shop)


@pytest.fixture
def play(run, start_playhead, tmp_path):
    """`play("replay", replies, "--live", "llm")`: (the process that ended, its report, what was asked)."""

    def play(verb, replies, *words):
        report = tmp_path / "report.json"
        with ScriptedLLM(replies) as llm:
            argv = [verb, str(run.tape.run), "--report", str(report), *words]
            done = start_playhead(argv, run.cwd, {**run.environ, **llm.environ()})
            asked = [one for one in llm.requests if one.method == "POST"]
        # 3 where the new prompt made the agent take another way: taped calls are left over then.
        assert done.returncode in (0, 3), done.stdout + done.stderr
        return done, json.loads(report.read_text()), asked

    return play


def test_a_changed_prompt_is_asked_live_with_tools_taped_and_the_comparison_is_printed(
    run, play, reply, tmp_path
):
    system = tmp_path / "system.txt"
    system.write_text("You sell, and count in words.")
    replies = [
        reply("Let me see.", price={"item": "cup"}),
        reply(order={"item": "cup", "quantity": 3}),
        reply("Three cups are twelve."),
    ]
    done, report, asked = play("replay", replies, "--live", "llm", "--system-file", str(system))
    assert "Three cups are twelve." in done.stdout
    assert all("count in words" in json.dumps(one.json) for one in asked)
    assert "ordered 3 cup" in asked[2].prompt
    served = [report["coverage"].get(name, {}) for name in ("tool", "mcp")]
    assert sum(one.get("live", 0) + one.get("blocked", 0) for one in served) == 0
    assert report["coverage"]["llm"]["live"] == 3
    assert "trajectories differ" in done.stderr
    assert "+Three cups are twelve." in done.stderr


def test_a_tool_call_nearly_the_same_is_served_with_its_score_and_a_stranger_is_blocked(
    run, play, reply
):
    replies = [
        reply(order={"item": "cup", "quantity": 4}),
        reply(order={"item": "a mug from the shelf on the left, in blue", "quantity": 700}),
        reply("I could not order that."),
    ]
    done, report, asked = play("replay", replies, "--live", "llm")
    assert "I could not order that." in done.stdout
    (near,) = report["inexact"]
    assert (near["name"], near["rung"]) == ("order", "fuzzy")
    assert 0.7 <= near["score"] < 1
    assert "ordered 3 cup" in asked[1].prompt
    assert [one["name"] for one in report["blocked"]] == ["order"]
    assert "order was not run" in asked[2].prompt


def test_a_fork_takes_its_first_answers_from_the_tape_and_the_rest_from_the_model(run, play, reply):
    numbers = [call.number for call in load(run.tape).calls if call.boundary == "llm"]
    done, report, asked = play("fork", [reply("Only two are left.")], "--at", str(numbers[2]))
    assert "Only two are left." in done.stdout
    assert len(asked) == 1
    coverage = report["coverage"]["llm"]
    assert (coverage["exact"] + coverage["normalised"], coverage["live"]) == (2, 1)


def test_an_agent_that_meets_an_overloaded_model_tries_again_and_comes_through(run, play, reply):
    done, report, asked = play("replay", [reply("unused")], "--fault", "llm:2=529")
    assert "Three cups for 12." in done.stdout
    assert asked == []
    assert (len(report["faults"]), report["recovered"]) == (1, True)

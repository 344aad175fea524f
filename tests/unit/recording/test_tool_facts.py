"""Which LLM response requested a tool call."""

import json

from playhead.recording.tool_facts import ToolRequests

COMMAND = "git log --format='%h' | head -3"


def heard(arguments: dict[str, str]) -> ToolRequests:
    made = ToolRequests()
    use = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": arguments}
    body = {"type": "message", "role": "assistant", "content": [use], "stop_reason": "tool_use"}
    headers = {"content-type": "application/json"}
    made.hear("1:5", "anthropic.messages", 200, headers, json.dumps(body).encode())
    return made


def test_a_command_that_the_agent_wraps_and_quotes_has_its_cause():
    made = heard({"command": COMMAND, "description": "look"})
    quoted = COMMAND.replace("'", "'\"'\"'")
    assert made.who_wrote(f"source snapshot.sh || true && eval '{quoted}' < /dev/null") == "1:5"
    assert made.who_wrote("git -c core.hooksPath=/dev/null status --short") is None


def test_a_short_word_of_a_model_is_not_found_in_every_command():
    made = heard({"command": "ls -la somewhere", "description": "list"})
    assert made.who_wrote("git list-files --list") is None

"""A coding agent on Anthropic's SDK: a loop, a shell tool, no streaming."""

import subprocess

import anthropic

TOOL = {
    "name": "bash",
    "description": "Run a shell command.",
    "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}},
}

client = anthropic.Anthropic()
messages = [{"role": "user", "content": "How many words are in the greeting?"}]
while True:
    answer = client.messages.create(
        model="claude-sonnet-4-5", max_tokens=500, tools=[TOOL], messages=messages
    )
    messages.append({"role": "assistant", "content": answer.content})
    for block in answer.content:
        if block.type == "text":
            print("agent:", block.text)
    if answer.stop_reason != "tool_use":
        break
    results = []
    for block in answer.content:
        if block.type == "tool_use":
            ran = subprocess.run(
                block.input["command"], shell=True, capture_output=True, text=True, check=False
            )
            print("shell:", ran.stdout.strip(), ran.returncode)
            results.append(
                {"type": "tool_result", "tool_use_id": block.id, "content": ran.stdout + ran.stderr}
            )
    messages.append({"role": "user", "content": results})

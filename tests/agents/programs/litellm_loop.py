"""A coding agent on litellm, streamed, with a shell tool."""

import json
import subprocess

import litellm

TOOL = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Run a shell command.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
    },
}

messages = [{"role": "user", "content": "How many words are in the greeting?"}]
while True:
    answer = litellm.completion(
        model="anthropic/claude-sonnet-4-5", messages=messages, tools=[TOOL], max_tokens=500
    )
    message = answer.choices[0].message
    messages.append(message.model_dump(exclude_none=True))
    if message.content:
        print("agent:", message.content)
    if not message.tool_calls:
        break
    for call in message.tool_calls:
        command = json.loads(call.function.arguments)["command"]
        out = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
        print("shell:", out.stdout.strip())
        messages.append({"role": "tool", "tool_call_id": call.id, "content": out.stdout})

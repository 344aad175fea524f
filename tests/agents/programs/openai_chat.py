"""A coding agent on OpenAI's chat completions, streamed, with a shell tool."""

import json
import subprocess

import openai

TOOL = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Run a shell command.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
    },
}

client = openai.OpenAI()
messages = [{"role": "user", "content": "How many words are in the greeting?"}]
while True:
    text, asked = "", {}
    stream = client.chat.completions.create(
        model="gpt-5",
        messages=messages,
        tools=[TOOL],
        stream=True,
        stream_options={"include_usage": True},
    )
    for chunk in stream:
        for choice in chunk.choices:
            if choice.delta.content:
                print(choice.delta.content, end="", flush=True)
                text += choice.delta.content
            for part in choice.delta.tool_calls or ():
                call = asked.setdefault(part.index, {"id": "", "name": "", "arguments": ""})
                call["id"] += part.id or ""
                call["name"] += part.function.name or ""
                call["arguments"] += part.function.arguments or ""
    print()
    calls = [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": call["arguments"]},
        }
        for call in asked.values()
    ]
    messages.append(
        {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
    )
    if not calls:
        break
    for call in asked.values():
        command = json.loads(call["arguments"])["command"]
        out = subprocess.check_output(["bash", "-c", command], text=True)
        print("shell:", out.strip())
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": out})

"""A coding agent on OpenAI's Responses API, async, with a shell tool."""

import asyncio
import json

import openai

TOOL = {
    "type": "function",
    "name": "bash",
    "description": "Run a shell command.",
    "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
}


async def bash(command: str) -> str:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec("bash", "-c", command, stdout=pipe)
    out, _ = await process.communicate()
    return out.decode()


async def main() -> None:
    client = openai.AsyncOpenAI()
    items = [{"role": "user", "content": "How many words are in the greeting?"}]
    while True:
        answer = await client.responses.create(model="gpt-5", input=items, tools=[TOOL])
        items += [item.model_dump(exclude_none=True) for item in answer.output]
        if answer.output_text:
            print("agent:", answer.output_text)
        calls = [item for item in answer.output if item.type == "function_call"]
        if not calls:
            break
        for call in calls:
            out = await bash(json.loads(call.arguments)["command"])
            print("shell:", out.strip())
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": out})
    await client.close()


asyncio.run(main())

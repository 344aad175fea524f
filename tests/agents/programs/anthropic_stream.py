"""A coding agent on Anthropic's async SDK: streamed answers, two shell tools at the same time."""

import asyncio

import anthropic

TOOL = {
    "name": "bash",
    "description": "Run a shell command.",
    "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}},
}


async def bash(command: str) -> str:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_shell(command, stdout=pipe)
    out, _ = await process.communicate()
    return out.decode()


async def main() -> None:
    client = anthropic.AsyncAnthropic()
    messages = [{"role": "user", "content": "How many words are in the greeting?"}]
    while True:
        async with client.messages.stream(
            model="claude-sonnet-4-5", max_tokens=500, tools=[TOOL], messages=messages
        ) as stream:
            async for text in stream.text_stream:
                print(text, end="", flush=True)
            answer = await stream.get_final_message()
        print()
        messages.append({"role": "assistant", "content": answer.content})
        asked = [block for block in answer.content if block.type == "tool_use"]
        if not asked:
            break
        outputs = await asyncio.gather(*(bash(block.input["command"]) for block in asked))
        print("shell:", [out.strip() for out in outputs])
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": out}
            for block, out in zip(asked, outputs, strict=True)
        ]
        messages.append({"role": "user", "content": results})
    await client.close()


asyncio.run(main())

"""Streams of anthropic's async client, interleaved with tools in threads."""

import asyncio
import subprocess
import sys

import anthropic

client = anthropic.AsyncAnthropic(base_url=sys.argv[1], api_key="sk-test", max_retries=0)


def tool(n):
    done = subprocess.run(["echo", f"tool {n}"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


async def ask(n):
    messages = [{"role": "user", "content": f"question {n}"}]
    async with client.messages.stream(
        model="claude-test", max_tokens=64, messages=messages
    ) as stream:
        async for text in stream.text_stream:
            print(n, "says", text)
    print(n, "ran", await asyncio.to_thread(tool, n))


async def main():
    await asyncio.gather(*(ask(n) for n in range(5)))


asyncio.run(main())

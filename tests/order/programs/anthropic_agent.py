"""Three agents on anthropic's client: a stream, then tools in threads while the next stream begins."""

import asyncio
import pathlib
import subprocess
import sys
import tempfile

import anthropic

client = anthropic.AsyncAnthropic(base_url=sys.argv[1], api_key="sk-test", max_retries=0)
folder = pathlib.Path(tempfile.mkdtemp())


def run(name):
    done = subprocess.run(["echo", f"ran {name}"], capture_output=True, text=True, check=True)
    print("tool", done.stdout.strip())
    return done.stdout


def note(name):
    path = folder / f"{name}.txt"
    path.write_text(name)
    print("wrote", path.read_text())
    return name


async def agent(name):
    messages = [{"role": "user", "content": f"question of {name}"}]
    for turn in range(2):
        said = []
        async with client.messages.stream(
            model="claude-test", max_tokens=64, messages=messages
        ) as stream:
            async for text in stream.text_stream:
                said.append(text)
                print(name, turn, text)
        results = await asyncio.gather(
            asyncio.to_thread(run, f"{name}{turn}"),
            asyncio.to_thread(note, f"{name}{turn}"),
            asyncio.wait_for(asyncio.to_thread(run, f"{name}{turn} again"), 5),
        )
        messages.append({"role": "assistant", "content": "".join(said)})
        messages.append({"role": "user", "content": "".join(results)})


async def main():
    async with asyncio.timeout(60):
        await asyncio.gather(*(agent(name) for name in "abc"))


asyncio.run(main())

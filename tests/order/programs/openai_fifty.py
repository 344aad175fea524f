"""The async client of openai, 50 calls at once."""

import asyncio
import sys

import openai

client = openai.AsyncOpenAI(base_url=f"{sys.argv[1]}/v1", api_key="sk-test", max_retries=0)


async def ask(n):
    answer = await client.chat.completions.create(
        model="gpt-test", messages=[{"role": "user", "content": f"question {n}"}]
    )
    print(n, answer.choices[0].message.content)


async def main():
    await asyncio.gather(*(ask(n) for n in range(50)))


asyncio.run(main())

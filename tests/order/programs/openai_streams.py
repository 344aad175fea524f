"""Ten streams of openai's async client at once; every third is closed early."""

import asyncio
import sys

import openai

client = openai.AsyncOpenAI(base_url=f"{sys.argv[1]}/v1", api_key="sk-test", max_retries=0)


async def ask(n):
    stream = await client.chat.completions.create(
        model="gpt-test", messages=[{"role": "user", "content": f"question {n}"}], stream=True
    )
    seen = 0
    async for chunk in stream:
        text = chunk.choices[0].delta.content if chunk.choices else None
        if text:
            print(n, text)
            seen += 1
        if n % 3 == 2 and seen == 3:
            await stream.close()
            print(n, "closed")
            break
    return n


async def main():
    for one in asyncio.as_completed([ask(n) for n in range(10)]):
        print("done", await one)


asyncio.run(main())

"""Two questions on the OpenAI SDK, the first one streamed if it is told so."""

import os

import openai

client = openai.OpenAI(max_retries=2)
answer = client.chat.completions.create(
    model="gpt-5",
    stream=bool(os.environ.get("STREAM")),
    messages=[
        {"role": "system", "content": "Be polite."},
        {"role": "user", "content": "Say hello."},
    ],
)
if os.environ.get("STREAM"):
    print("".join(chunk.choices[0].delta.content or "" for chunk in answer if chunk.choices))
else:
    print(answer.choices[0].message.content)
earlier = [
    {"role": "user", "content": "Say hello."},
    {"role": "assistant", "content": "Hello!"},
]
second = client.chat.completions.create(
    model="gpt-5",
    messages=[
        *(earlier if os.environ.get("REMEMBER") else []),
        {"role": "user", "content": "Say goodbye."},
    ],
)
print(second.choices[0].message.content)

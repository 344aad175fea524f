"""An agent on the Anthropic SDK: a loop, a tool that reads, a tool that sends mail."""

import os
import smtplib
from pathlib import Path

import anthropic

import playhead


@playhead.tool(effect="read")
def search(query):
    with Path(os.environ["SEEN"]).open("a") as seen:
        seen.write(f"search {query}\n")
    return f"Order A-17 is late. ({query})"


@playhead.tool
def send_mail(to, text):
    with smtplib.SMTP("127.0.0.1", int(os.environ["SMTP_PORT"])) as smtp:
        smtp.sendmail("a@example.com", [to], f"Subject: order\n\n{text}")
    return "sent"


TOOLS = {"search": search, "send_mail": send_mail}
SCHEMAS = [
    {"name": name, "description": name, "input_schema": {"type": "object", "properties": {}}}
    for name in TOOLS
]
client = anthropic.Anthropic(max_retries=int(os.environ.get("RETRIES", "2")))
messages = [{"role": "user", "content": "Where is order A-17?"}]
while True:
    asked = {
        "model": "claude-sonnet-5-5",
        "max_tokens": 99,
        "system": "Be polite.",
        "messages": messages,
        "tools": SCHEMAS,
    }
    if os.environ.get("STREAM"):
        with client.messages.stream(**asked) as stream:
            answer = stream.get_final_message()
    else:
        answer = client.messages.create(**asked)
    for block in answer.content:
        if block.type == "text":
            print(block.text, flush=True)
    uses = [block for block in answer.content if block.type == "tool_use"]
    if not uses:
        break
    results = []
    for use in uses:
        try:
            said = TOOLS[use.name](**use.input)
        except OSError:
            if not os.environ.get("FORGIVE"):
                raise
            said = TOOLS[use.name](**use.input)
        results.append({"type": "tool_result", "tool_use_id": use.id, "content": str(said)})
    messages.append(
        {"role": "assistant", "content": [block.model_dump() for block in answer.content]}
    )
    messages.append({"role": "user", "content": results})

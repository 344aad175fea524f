"""An agent without an SDK, which starts quickly: it retries, reads, and may send mail."""

import json
import os
import urllib.request
from pathlib import Path

import playhead


@playhead.tool(effect="read")
def search(query):
    return f"late ({query})"


@playhead.tool
def send_mail(to):
    with Path(os.environ["SEEN"]).open("a") as seen:
        seen.write(f"mail {to}\n")
    return "sent"


TOOLS = {"search": search, "send_mail": send_mail}
HEADERS = {"content-type": "application/json", "x-api-key": "k", "anthropic-version": "2023-06-01"}


def ask(messages):
    asked = {"model": "claude-sonnet-5-5", "max_tokens": 9, "system": "Be polite."}
    request = urllib.request.Request(
        os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages",
        json.dumps({**asked, "messages": messages}).encode(),
        HEADERS,
    )
    for _ in range(3):
        try:
            with urllib.request.urlopen(request) as answer:
                return json.load(answer)["content"]
        except OSError:
            continue
    raise SystemExit("The model does not answer.")


messages = [{"role": "user", "content": "Where is order A-17?"}]
while True:
    content = ask(messages)
    print(*(part["text"] for part in content if part["type"] == "text"), flush=True)
    uses = [part for part in content if part["type"] == "tool_use"]
    if not uses:
        break
    results = [
        {
            "type": "tool_result",
            "tool_use_id": use["id"],
            "content": TOOLS[use["name"]](**use["input"]),
        }
        for use in uses
    ]
    messages += [{"role": "assistant", "content": content}, {"role": "user", "content": results}]

"""An agent without an SDK, which starts quickly: it retries, reads, and may send mail."""

import json
import os
import urllib.request
from pathlib import Path

import playhead


def note(line):
    with Path(os.environ["SEEN"]).open("a") as seen:
        seen.write(f"{line}\n")


@playhead.tool(effect="read")
def search(query):
    note(f"search {query}")
    return f"Order A-17 is late. ({query})"


@playhead.tool
def send_mail(to, text=""):
    if os.environ["SMTP_PORT"] == "1":
        note(f"mail {to}")
    else:
        import smtplib

        with smtplib.SMTP("127.0.0.1", int(os.environ["SMTP_PORT"])) as smtp:
            smtp.sendmail("a@example.com", [to], f"Subject: order\n\n{text}")
    return "sent"


TOOLS = {"search": search, "send_mail": send_mail}
HEADERS = {"content-type": "application/json", "x-api-key": "k", "anthropic-version": "2023-06-01"}
TRIES = 1 + int(os.environ.get("RETRIES", "2"))


def ask(messages):
    asked = {"model": "claude-sonnet-5-5", "max_tokens": 9, "system": "Be polite."}
    request = urllib.request.Request(
        os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages",
        json.dumps({**asked, "messages": messages}).encode(),
        HEADERS,
    )
    for _ in range(TRIES):
        try:
            with urllib.request.urlopen(request) as answer:
                return json.load(answer)["content"]
        except OSError:
            continue
    raise SystemExit("The model does not answer.")


def call(name, arguments):
    try:
        return TOOLS[name](**arguments)
    except OSError:
        if not os.environ.get("FORGIVE"):
            raise
        return TOOLS[name](**arguments)


messages = [{"role": "user", "content": "Where is order A-17?"}]
while True:
    content = ask(messages)
    texts = [part["text"] for part in content if part["type"] == "text"]
    if texts:
        print(*texts, flush=True)
    uses = [part for part in content if part["type"] == "tool_use"]
    if not uses:
        break
    results = [
        {
            "type": "tool_result",
            "tool_use_id": use["id"],
            "content": call(use["name"], use["input"]),
        }
        for use in uses
    ]
    messages += [{"role": "assistant", "content": content}, {"role": "user", "content": results}]

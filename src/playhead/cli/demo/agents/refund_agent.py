"""An agent that handles a refund: three turns, three tools, one failure from which it recovers.

It uses the Anthropic SDK as any program would. From Playhead it uses only the names that make a tape easier to read:
tools, turns, and the checkpoints it has reached.
"""

import json
import os
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import anthropic

import playhead

MODEL = "claude-sonnet-5-5"
SYSTEM = "You are the refund agent of a small shop. Look things up before you decide."
SHOP = Path(__file__).parent / "shop"

TOOLS: list[Any] = [
    {
        "name": "lookup_order",
        "description": "An order by its number.",
        "input_schema": {"type": "object", "properties": {"order": {"type": "string"}}},
    },
    {
        "name": "search_policy",
        "description": "Lines of the shop's policy that hold a word.",
        "input_schema": {"type": "object", "properties": {"word": {"type": "string"}}},
    },
    {
        "name": "issue_refund",
        "description": "Pay an amount back. Fails while the gateway is busy.",
        "input_schema": {
            "type": "object",
            "properties": {"order": {"type": "string"}, "amount": {"type": "number"}},
        },
    },
]


@playhead.tool(effect="read")
def lookup_order(order: str) -> Any:
    return json.loads((SHOP / "orders.json").read_text())[order]


@playhead.tool(effect="read")
def search_policy(word: str) -> list[str]:
    found = subprocess.run(
        ["grep", "-i", word, "shop/policy.txt"], capture_output=True, text=True, check=False
    )
    return found.stdout.splitlines()


@playhead.tool(effect="irreversible")
def issue_refund(order: str, amount: float) -> Any:
    body = json.dumps({"order": order, "amount": amount}).encode()
    request = urllib.request.Request(os.environ["PAYMENTS_URL"], body, method="POST")
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


CALLS: dict[str, Any] = {
    "lookup_order": lookup_order,
    "search_policy": search_policy,
    "issue_refund": issue_refund,
}


def use(block: Any) -> dict[str, Any]:
    """Call a tool. A failure is reported to the model, which may be able to handle it."""
    try:
        result, failed = json.dumps(CALLS[block.name](**block.input)), False
    except Exception as error:  # the model handles every exception of a tool
        result, failed = f"{type(error).__name__}: {error}", True
    return {"type": "tool_result", "tool_use_id": block.id, "content": result, "is_error": failed}


def respond(client: anthropic.Anthropic, messages: list[Any]) -> None:
    """Let the model answer and use tools until its answer is complete."""
    while True:
        with client.messages.stream(
            model=MODEL, max_tokens=600, system=SYSTEM, tools=TOOLS, messages=messages
        ) as stream:
            for text in stream.text_stream:
                print(text, end="", flush=True)
            answer = stream.get_final_message()
        print()
        messages.append({"role": "assistant", "content": [b.model_dump() for b in answer.content]})
        results = [use(block) for block in answer.content if block.type == "tool_use"]
        if not results:
            return
        messages.append({"role": "user", "content": results})
        playhead.seam("tools used", {"count": len(results)})


TURNS = [
    ("understand", "find out what happened", "My order A-1009 arrived broken. What now?"),
    ("refund", "pay the money back", "Yes, please refund it."),
    ("confirm", "put it in writing", "Could I have that in writing?"),
]


def main() -> None:
    client = anthropic.Anthropic(max_retries=0)
    messages: list[Any] = []
    for name, purpose, said in TURNS:
        print(f"\n> {said}")
        messages.append({"role": "user", "content": said})
        with playhead.turn(name, purpose=purpose, input=said):
            respond(client, messages)


if __name__ == "__main__":
    main()

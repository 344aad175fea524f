"""A support agent: a loop on Anthropic's SDK with three tools. It knows nothing of Playhead.

python agent.py "Where is order A-17?"
"""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import anthropic

MODEL = "claude-sonnet-5-5"
ORDERS = json.loads(Path(__file__).with_name("orders.json").read_text())
SYSTEM = "You answer customers of a shop. Look orders up before you say anything about them."
TOOLS = [
    {
        "name": "find_order",
        "description": "An order by its number.",
        "input_schema": {"type": "object", "properties": {"number": {"type": "string"}}},
    },
    {
        "name": "today",
        "description": "Today's date.",
        "input_schema": {"type": "object", "properties": {}},
    },
    {
        "name": "open_ticket",
        "description": "Hand the matter over to a person.",
        "input_schema": {"type": "object", "properties": {"summary": {"type": "string"}}},
    },
]


def find_order(number: str) -> str:
    order = ORDERS.get(number)
    return json.dumps(order) if order else f"There is no order {number}."


def today() -> str:
    return datetime.now(timezone.utc).date().isoformat()


def open_ticket(summary: str) -> str:
    """A program of somebody else's: what agents really do is mostly running those."""
    told = ["printf", "%s", f"ticket opened: {summary}"]
    return subprocess.run(told, capture_output=True, text=True, check=True).stdout


def run_tool(name: str, arguments: dict[str, Any]) -> str:
    known = {"find_order": find_order, "today": today, "open_ticket": open_ticket}
    return known[name](**arguments)


def answer(question: str) -> str:
    client = anthropic.Anthropic()
    messages: list[Any] = [{"role": "user", "content": question}]
    while True:
        reply = client.messages.create(
            model=MODEL, max_tokens=1000, system=SYSTEM, tools=TOOLS, messages=messages
        )
        messages.append({"role": "assistant", "content": reply.content})
        asked = [block for block in reply.content if block.type == "tool_use"]
        if not asked:
            return "".join(block.text for block in reply.content if block.type == "text")
        results = [
            {
                "type": "tool_result",
                "tool_use_id": block.id,
                "content": run_tool(block.name, block.input),
            }
            for block in asked
        ]
        messages.append({"role": "user", "content": results})


if __name__ == "__main__":
    print(answer(" ".join(sys.argv[1:]) or "Where is order A-17?"))

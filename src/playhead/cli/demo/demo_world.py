"""The demo agent's environment: its files, a scripted model, and a payment gateway that fails once.

Knows the scripted LLM; not the steps of the demo.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

from playhead.testing import Exchange, Reply, ScriptedLLM, ToolCall, Usage

_AGENTS = Path(__file__).parent / "agents"
_ORDER = {"id": "A-1009", "item": "teapot", "total": 49.9, "status": "delivered"}
_POLICY = """\
Broken on arrival: full refund within 30 days, no return needed.
Changed your mind: return it within 14 days, postage is yours.
Lost in the post: we send it again.
"""
_MAIL = """\
Dear customer,

we have refunded 49.90 for order A-1009 (a teapot that arrived broken).
The reference is R-77; it takes up to three working days.

Your shop"""

REPLIES = (
    Reply(
        text="I am sorry to hear that. Let me look at the order and at our policy.",
        tool_calls=[
            ToolCall(name="lookup_order", arguments={"order": "A-1009"}),
            ToolCall(name="search_policy", arguments={"word": "broken"}),
        ],
        usage=Usage(input=612, output=94, cache_write=1840),
    ),
    Reply(
        text="A teapot that arrived broken is refunded in full: 49.90. Shall I do that?",
        usage=Usage(input=208, output=31, cache_read=1840),
    ),
    Reply(
        text="Refunding 49.90 now.",
        tool_calls=[ToolCall(name="issue_refund", arguments={"order": "A-1009", "amount": 49.9})],
        usage=Usage(input=255, output=58, cache_read=1840),
    ),
    Reply(
        text="The payment gateway was busy. I will try once more.",
        tool_calls=[ToolCall(name="issue_refund", arguments={"order": "A-1009", "amount": 49.9})],
        usage=Usage(input=341, output=63, cache_read=1840),
    ),
    Reply(text="Done: refund R-77 is booked.", usage=Usage(input=420, output=14, cache_read=1840)),
    Reply(text=_MAIL, usage=Usage(input=447, output=88, cache_read=1840)),
)


def copy_files(folder: Path) -> None:
    """Copy the agents and their data to `folder`, where users can read and change them."""
    (folder / "shop").mkdir(parents=True, exist_ok=True)
    (folder / "shop" / "orders.json").write_text(json.dumps({"A-1009": _ORDER}))
    (folder / "shop" / "policy.txt").write_text(_POLICY)
    for agent in _AGENTS.glob("[a-z]*.py"):
        text = agent.read_text(encoding="utf-8")
        if find_spec("anthropic") is None:
            text = text.replace("import anthropic\n", "import messages_client as anthropic\n")
        (folder / agent.name).write_text(text, encoding="utf-8")


def model() -> ScriptedLLM:
    """The scripted model; it streams word by word."""
    replies = [
        Reply(
            text=one.text,
            tool_calls=one.tool_calls,
            usage=one.usage,
            delay=0.15,
            chunk_delay=0.015,
        )
        for one in REPLIES
    ]
    return ScriptedLLM(replies, routes={"/payments": _Gateway().pay})


class _Gateway:
    """Answers 503 to the first request."""

    def __init__(self) -> None:
        self._asked = 0

    async def pay(self, exchange: Exchange) -> None:
        self._asked += 1
        if self._asked == 1:
            await exchange.answer_json(503, {"error": "busy, try again"})
        else:
            await exchange.answer_json(200, {"refund": "R-77", "state": "booked"})

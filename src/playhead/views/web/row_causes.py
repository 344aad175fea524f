"""Find the cause of each item of a run. Pure.

A tool is called because a response asked for it, a model is called because of a tool's result, an HTTP exchange
happens inside a tool. Followed upwards, this is the chain of causes of an item.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from playhead import llm as wire
from playhead.story import CallItem, Item, Story, TurnItem

# Words between an item and its cause; the outline holds their index.
WORDS = ("", "asked for by", "given the result of", "inside", "part of")
_ASKED, _GIVEN, _INSIDE, _PART = 1, 2, 3, 4

Reason = tuple[str, int]


def reasons(story: Story) -> dict[str, Reason]:
    """Return {ref: (ref of the cause, index of the word between them)}."""
    found: dict[str, Reason] = {}
    uses: dict[str, tuple[str, str, int]] = {}
    for ref, item in story.items.items():
        reason = _near(story, item)
        if isinstance(item, CallItem) and item.llm:
            result = _newest_result(story, item, uses)
            reason = (result, _GIVEN) if result is not None else reason
            _remember(item, uses)
        if reason is not None and reason[0] != ref:
            found[ref] = reason
    return found


def _near(story: Story, item: Item) -> Reason | None:
    cause = getattr(item, "cause", None)
    if cause is not None and cause in story.items:
        above = story.items[cause]
        return cause, _ASKED if isinstance(above, CallItem) and above.llm else _INSIDE
    if item.parent is None or item.parent not in story.items:
        return None
    return item.parent, _PART if isinstance(story.items[item.parent], TurnItem) else _INSIDE


def _remember(call: CallItem, uses: dict[str, tuple[str, str, int]]) -> None:
    """Remember the tool calls that this response asks for, with their ordinal among calls of the same name."""
    seen: Counter[str] = Counter()
    for exchange in call.llm:
        for use in exchange.response.tool_calls if exchange.response else ():
            name = use.name or ""
            if use.id is not None:
                uses[use.id] = (call.ref, name, seen[name])
            seen[name] += 1


def _newest_result(
    story: Story, call: CallItem, uses: dict[str, tuple[str, str, int]]
) -> str | None:
    """Return the tool call whose result is the newest in this request."""
    for message in reversed(call.llm[0].request.messages):
        if message.role == "assistant":
            return None
        for part in reversed(message.parts):
            if isinstance(part, wire.ToolResult) and part.id in uses:
                return _performed(story, *uses[part.id])
    return None


def _performed(story: Story, asker: str, name: str, ordinal: int) -> str:
    """Return the call that performed a requested tool; the response itself if none is on the tape."""
    by_name: dict[str, list[str]] = defaultdict(list)
    for ref in story.children.get(asker, ()):
        item = story.items[ref]
        if isinstance(item, CallItem):
            by_name[item.name].append(ref)
    performed = by_name.get(name, [])
    return performed[ordinal] if ordinal < len(performed) else asker

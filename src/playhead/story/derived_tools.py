"""Find the tool calls of hand-written loops, which no hook sees, in the conversation with the model. Pure.

A response asks for a tool, and a later request carries its result: between the two the program ran the tool. Such a
call is marked as derived. Its duration is the time between the response and that request, so for tools that ran side
by side it is an upper bound. A tool whose result was never sent has no call: nothing says that it ran.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from playhead.llm import ToolResult, ToolUse
from playhead.llm.llm_exchange import text_of
from playhead.story.shape import CallItem, Failure, Item, Mark

# Member of the facts of a derived call.
DERIVED = "derived"


def with_derived_tools(items: Mapping[str, Item]) -> dict[str, Item]:
    """Return the items with derived tool calls after the LLM calls that asked for them. Recorded calls keep their
    numbers; derived ones are numbered after them.
    """
    calls = [one for one in items.values() if isinstance(one, CallItem)]
    models = sorted((one for one in calls if one.llm and one.ended), key=lambda one: one.place)
    found = dict(_derived(models, calls, first_number=len(calls) + 1))
    if not found:
        return dict(items)
    by_id: dict[str, Item] = {}
    owners = {ref: made for ref, made in found.items() if made}
    for ref, item in items.items():
        by_id[ref] = _below_its_tool(item, owners)
        by_id.update({made.ref: made for made in owners.get(ref, ())})
    return by_id


def _derived(
    models: Sequence[CallItem], calls: Sequence[CallItem], *, first_number: int
) -> Iterator[tuple[str, list[CallItem]]]:
    number = first_number
    hooked = [one for one in calls if one.boundary in ("tool", "mcp")]
    results = [list(_new_results(one)) for one in models]
    for at, model in enumerate(models):
        uses = [use for use in _uses(model) if use.name]
        if not uses:
            continue
        seen = Counter(one.name for one in hooked if one.cause == model.ref)
        made: list[CallItem] = []
        for use in uses:
            # A framework or a decorator has recorded this tool already. MCP clients put a prefix before its name.
            if _take(seen, str(use.name)):
                continue
            answer = _answer(use, models[at + 1 :], results[at + 1 :])
            if answer is None or _is_hooked(use, model, answer[0], hooked):
                continue
            made.append(_call(use, model, *answer, number=number, place_in_response=len(made)))
            number += 1
        yield model.ref, made


def _uses(model: CallItem) -> Iterator[ToolUse]:
    for exchange in model.llm:
        if exchange.response is not None:
            yield from exchange.response.tool_calls


def _new_results(model: CallItem) -> Iterator[ToolResult]:
    """Return the results that are new in this request: those after the model's last message. Every request of a
    conversation repeats the earlier ones.
    """
    for exchange in model.llm:
        messages = exchange.request.messages
        last = max((at for at, one in enumerate(messages) if one.role == "assistant"), default=-1)
        for message in messages[last + 1 :]:
            yield from (part for part in message.parts if isinstance(part, ToolResult))


def _answer(
    use: ToolUse, models: Sequence[CallItem], results: Sequence[list[ToolResult]]
) -> tuple[CallItem, ToolResult] | None:
    """Return the first later request with the result of this tool. Without ids, results are matched by name and used
    once.
    """
    for model, brought in zip(models, results, strict=True):
        for at, result in enumerate(brought):
            if (use.id and result.id == use.id) or (not use.id and result.name == use.name):
                del brought[at]
                return model, result
    return None


def _is_hooked(
    use: ToolUse, asked: CallItem, answered: CallItem, hooked: Iterable[CallItem]
) -> bool:
    """Return whether a tool of this name with an unknown cause ran in between."""
    return any(
        one.cause is None
        and _is_name(one.name, use.name)
        and asked.place < one.place < answered.place
        for one in hooked
    )


def _is_name(recorded: str, used: str | None) -> bool:
    return recorded == used or bool(used and used.endswith(f"__{recorded}"))


def _take(seen: Counter[str], used: str) -> bool:
    name = next((one for one, left in seen.items() if left and _is_name(one, used)), None)
    if name is None:
        return False
    seen[name] -= 1
    return True


def _call(
    use: ToolUse,
    asked: CallItem,
    answered: CallItem,
    result: ToolResult,
    *,
    number: int,
    place_in_response: int,
) -> CallItem:
    began = asked.ended or Mark(mono=asked.mono, place=asked.place)
    said = text_of(result.content)
    return CallItem(
        number=number,
        ref=f"derived-{asked.ref.replace(':', '-')}:{place_in_response}",
        boundary="tool",
        name=str(use.name),
        lane=asked.lane,
        wall=asked.wall + max(0, began.mono - asked.mono),
        mono=began.mono,
        who=asked.who,
        parent=asked.parent,
        cause=asked.ref,
        request={"arguments": use.arguments},
        facts={DERIVED: True, "result_in": answered.number},
        how="raised" if result.is_error else "returned",
        took_ns=max(0, answered.mono - began.mono),
        value=None if result.is_error else said,
        failure=Failure(type="error", message=said) if result.is_error else None,
        place=began.place,
        ended=Mark(mono=answered.mono, place=answered.place),
    )


def _below_its_tool(item: Item, owners: Mapping[str, list[CallItem]]) -> Item:
    """Put a command that a response asked for below the tool that ran it, if the tool's arguments contain the
    command.
    """
    if not isinstance(item, CallItem) or item.cause is None or item.cause not in owners:
        return item
    command = item.facts.get("command")
    ran = command if isinstance(command, str) and command else item.name
    for tool in owners[item.cause]:
        given = tool.request["arguments"]
        text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        # In its JSON form: quotes and line ends of a command are escaped there.
        if ran and (ran in text or json.dumps(ran, ensure_ascii=False)[1:-1] in text):
            return dataclasses.replace(item, cause=tool.ref)
    return item

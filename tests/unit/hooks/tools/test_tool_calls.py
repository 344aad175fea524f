"""One tool, two hooks: it is on the tape once, with what both know of it."""

import asyncio

import pytest

from playhead.hooks.tools.decorator import tool
from playhead.hooks.tools.tool_calls import Tool, effect_hinted, perform, perform_async
from playhead.recording.adapter import FunctionAdapter
from playhead.recording.deck import Call


@tool(effect="read")
def lookup(key: str) -> str:
    return key.upper()


@tool
def depth(left: int) -> int:
    return 0 if left == 0 else 1 + depth(left - 1)


def framework(name, function, *args):
    described = Tool(name=name, arguments={"given": list(args)}, library="some", function=function)
    return perform(lambda: described, lambda: function(*args))


def test_a_decorated_function_inside_a_framework_s_tool_is_recorded_once(taping):
    assert framework("lookup", lookup, "a") == "A"
    assert framework("renamed_by_the_framework", lookup, "b") == "B"
    assert [row[0] for row in taping.shown()] == ["lookup", "renamed_by_the_framework"]


def test_the_framework_s_call_has_the_effect_that_the_function_declares(taping):
    framework("lookup", lookup, "a")
    call = taping.call("lookup")
    assert call.data["effect"] == "read"
    assert call.data["library"] == "some"


def test_a_tool_that_calls_itself_is_a_call_each_time(taping):
    assert framework("depth", depth, 2) == 2
    first, second, third = taping.calls()
    assert [first.data["request"], second.data["request"]] == [
        {"arguments": {"given": [2]}},
        {"arguments": {"left": 1}},
    ]
    assert third.parent == second.seq


def test_another_tool_inside_is_a_child(taping):
    @tool
    def other() -> str:
        return lookup("x")

    framework("other", other)
    assert [row[0] for row in taping.shown()] == ["other", "lookup"]
    assert taping.call("lookup").parent == taping.call("other").seq


def test_one_framework_inside_another_is_recorded_once(taping):
    def inner(key):
        return framework("lookup", str.upper, key)

    assert framework("lookup", inner, "a") == "A"
    assert taping.shown() == [("lookup", {"given": ["a"]}, "A")]


def test_the_same_name_at_another_boundary_is_a_child_and_was_asked_for_once(taping):
    asked = taping.deck.asked
    body = b'{"choices":[{"message":{"tool_calls":[%s]}}]}' % b",".join(
        b'{"id":"%d","type":"function","function":{"name":"look","arguments":"{\\"n\\":%d}"}}'
        % (n, n)
        for n in (1, 2)
    )
    llm = f"{taping.deck.recorder.segment}:1"
    asked.hear(llm, "openai.chat", 200, {"content-type": "application/json"}, body)

    def remote(number):
        call = Call(boundary="mcp", name="look", request={"arguments": {"n": number}})
        return taping.deck.perform(call, FunctionAdapter(lambda: number))

    for number in (1, 2):
        described = Tool(name="look", arguments={"n": number}, library="some")
        perform(lambda described=described: described, lambda number=number: remote(number))
    assert [(call.data["boundary"], call.cause) for call in taping.calls()] == [
        ("tool", 1),
        ("mcp", None),
        ("tool", 1),
        ("mcp", None),
    ]


def test_async_tools_in_parallel_keep_their_claims_apart(taping):
    @tool
    async def slow(key: str) -> str:
        await asyncio.sleep(0)
        return key

    async def both():
        made = [
            perform_async(
                lambda key=key: Tool(
                    name="slow", arguments={"key": key}, library="some", function=slow
                ),
                lambda key=key: slow(key),
            )
            for key in "ab"
        ]
        return await asyncio.gather(*made)

    assert asyncio.run(both()) == ["a", "b"]
    assert taping.shown() == [("slow", {"key": "a"}, "a"), ("slow", {"key": "b"}, "b")]


def test_a_tool_that_cannot_be_described_runs_and_is_a_hole(taping):
    def describe():
        raise AttributeError("no name")

    assert perform(describe, lambda: 7) == 7
    assert taping.calls() == []
    (hole,) = taping.events("hole")
    assert hole.data["why"] == "AttributeError: no name"


def test_a_tool_that_cannot_be_described_does_not_run_in_a_replay(taping, replaying):
    def describe():
        raise AttributeError("no name")

    with replaying(taping), pytest.raises(AttributeError):
        perform(describe, lambda: pytest.fail("it ran"))


class Hints:
    readOnlyHint = None  # noqa: N815  MCP's spelling
    destructiveHint = True  # noqa: N815


@pytest.mark.parametrize(
    ("hints", "effect"),
    [
        ({"readOnlyHint": True}, "read"),
        ({"readOnlyHint": False, "destructiveHint": True}, "irreversible"),
        ({"readOnlyHint": False, "destructiveHint": False}, "write"),
        ({"title": "says nothing"}, None),
        (Hints(), "irreversible"),
        (None, None),
    ],
)
def test_hints_are_the_effect_and_silence_is_unknown(hints, effect):
    assert effect_hinted(hints) == effect

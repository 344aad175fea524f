"""Agents on frameworks: each tool call once, with arguments, result, and the answer that asked."""

import pytest

# Each agent is started three times, and some take seconds to import.
pytestmark = [pytest.mark.agents, pytest.mark.timeout(400)]

SOLD = [
    ("price", {"item": "cup"}, 4, 1),
    ("price", {"item": "plate"}, 6, 2),
    ("order", {"item": "cup", "quantity": 3}, "ordered 3 cup", 2),
]


def check(run) -> None:
    assert "Three cups for 12." in run.printed
    assert run.printed == run.bare
    assert run.story.totals.llm_calls == run.requests
    assert run.story.status == "ok"
    assert run.story.totals.lost == 0
    assert run.replay() == run.printed


def by_turn(tools: list[tuple]) -> list[tuple]:
    """Tools that were asked for together may run in any order."""
    return sorted(tools, key=lambda row: (row[3], row[0] != "price"))


@pytest.mark.parametrize(
    "program", ["openai_agents_app.py", "langgraph_app.py", "pydantic_ai_app.py"]
)
def test_tools_of_frameworks_are_on_the_tape_without_a_change_to_the_program(record, shop, program):
    run = record("sdks", program, shop)
    check(run)
    assert by_turn(run.tools()) == SOLD
    assert (run.story.totals.input_tokens, run.story.totals.output_tokens) == (300, 60)


def test_a_crew_s_tools_are_on_the_tape(record, shop):
    run = record("crewai", "crewai_app.py", shop)
    check(run)
    assert by_turn(run.tools()) == SOLD


def test_tools_that_code_of_the_model_calls_are_on_the_tape(record, reply):
    script = [
        reply("Look.\n<code>\ncup = price('cup')\nprint(cup)\n</code>"),
        reply("Order.\n<code>\nprint(order(item='cup', quantity=cup - 1))\n</code>"),
        reply("Say.\n<code>\nfinal_answer('Three cups for 12.')\n</code>"),
    ]
    run = record("litellm", "smolagents_code.py", script)
    check(run)
    assert [row[:3] for row in run.tools()] == [
        ("price", {"item": "cup"}, 4),
        ("order", {"item": "cup", "quantity": 3}, "ordered 3 cup"),
        ("final_answer", {"answer": "Three cups for 12."}, "Three cups for 12."),
    ]


def test_smolagents_tools_are_on_the_tape_in_whichever_order_they_ran(record, shop, reply):
    shop[2] = reply(final_answer={"answer": "Three cups for 12."})
    run = record("litellm", "smolagents_tools.py", shop)
    check(run)
    final = ("final_answer", {"answer": "Three cups for 12."}, "Three cups for 12.", 3)
    assert by_turn(run.tools()) == [*SOLD, final]
    assert (run.story.totals.input_tokens, run.story.totals.output_tokens) == (300, 60)


def test_mcp_tools_are_on_the_tape_with_their_server_s_hints(record, shop):
    run = record("sdks", "mcp_anthropic.py", shop)
    check(run)
    sold = [
        (name, given, value["content"][0]["text"], cause)
        for name, given, value, cause in run.tools()
    ]
    assert sold == [(name, given, str(value), cause) for name, given, value, cause in SOLD]
    protocol = [one for one in run.calls("mcp") if "arguments" not in one.request]
    assert [one.name for one in protocol] == ["connect stdio", "initialize", "tools/list"]
    effects = {one.name: one.effect for one in run.calls("mcp")}
    assert (effects["price"], effects["order"]) == ("read", "irreversible")
    (server,) = run.calls("process")
    assert server.parent == protocol[0].ref


def test_tools_inside_a_program_that_drives_claude_code_are_on_the_tape(record, shop):
    for answer in shop:
        for call in answer.tool_calls:
            object.__setattr__(call, "name", f"mcp__shop__{call.name}")
    run = record("claude", "claude_sdk_app.py", shop, IS_SANDBOX="1")
    assert run.printed == run.bare
    assert "Three cups for 12." in run.printed
    sold = [(one.name, one.request["arguments"], one.value) for one in run.calls("tool")]
    assert sorted(sold, key=repr) == sorted(
        (
            (name, given, {"content": [{"type": "text", "text": str(value)}]})
            for name, given, value, _ in SOLD
        ),
        key=repr,
    )

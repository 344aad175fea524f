"""Claude's Agent SDK: the tools that run inside the program, called as its server calls them."""

import anyio
import pytest

pytestmark = pytest.mark.agents  # in its own environment: it brings Claude Code along


@pytest.fixture
def sdk(hooks):
    hooks("tool", "mcp")
    import claude_agent_sdk

    return claude_agent_sdk


def ask(server, name: str, arguments: dict):
    """One call through the in-process MCP server, as the SDK makes it for Claude Code."""
    from mcp import Client

    async def session():
        async with Client(server["instance"]) as client:
            return await client.call_tool(name, arguments)

    return anyio.run(session)


def make(sdk, ran):
    @sdk.tool("add", "Add.", {"a": int, "b": int}, annotations={"readOnlyHint": True})
    async def add(args):
        ran.append(args)
        return {"content": [{"type": "text", "text": str(args["a"] + args["b"])}]}

    return sdk.create_sdk_mcp_server("calc", tools=[add])


def test_a_tool_inside_the_program_is_recorded_below_the_server_s_call(sdk, taping):
    assert ask(make(sdk, []), "add", {"a": 1, "b": 2}).content[0].text == "3"
    (call,) = taping.calls("tool")
    assert call.data["request"] == {"arguments": {"a": 1, "b": 2}}
    assert call.data["effect"] == "read"
    assert taping.outcome(call)["value"] == {"content": [{"type": "text", "text": "3"}]}


def test_a_served_tool_does_not_run(sdk, taping, replaying):
    ran = []
    ask(make(sdk, ran), "add", {"a": 1, "b": 2})
    with replaying(taping, live=("mcp",)):
        assert ask(make(sdk, ran), "add", {"a": 1, "b": 2}).content[0].text == "3"
    assert ran == [{"a": 1, "b": 2}]

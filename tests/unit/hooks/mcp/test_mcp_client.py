"""MCP sessions over a real stdio server: each request on the tape, and served without it."""

import sys
from pathlib import Path

import anyio
import mcp
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client import stdio

SERVER = Path(__file__).with_name("mcp_shop.py")


@pytest.fixture(autouse=True)
def _hooked(hooks):
    hooks("mcp", "tool")


@pytest.fixture
def notes(tmp_path) -> Path:
    """What the server writes down as it works; gone and empty if it never ran."""
    path = tmp_path / "notes"
    path.touch()
    return path


def talk(notes: Path, *calls: tuple[str, dict], progress=None, command=sys.executable):
    """One session: initialize, list the tools, make the calls; what each gave."""

    async def session() -> list:
        server = StdioServerParameters(command=command, args=[str(SERVER), str(notes)])
        async with stdio.stdio_client(server) as streams, ClientSession(*streams) as client:
            greeting = await client.initialize()
            tools = await client.list_tools()
            told = [dumped(greeting)["serverInfo"]["name"], [one.name for one in tools.tools]]
            for name, arguments in calls:
                more = {} if progress is None else {"progress_callback": progress}
                told.append(await client.call_tool(name, arguments, **more))
            return told

    return anyio.run(session)


def dumped(model) -> dict:
    return model.model_dump(by_alias=True, mode="json", exclude_unset=True)


def test_every_request_is_recorded_and_a_tool_call_goes_by_the_tool_s_name(taping, notes):
    name, tools, result = talk(notes, ("stock", {"item": "cup"}))
    assert (name, tools) == ("shop", ["stock", "discard", "pack"])
    assert result.content[0].text == "3"
    assert [call.data["name"] for call in taping.calls("mcp")] == [
        "connect stdio",
        "initialize",
        "tools/list",
        "stock",
    ]
    call = taping.call("stock")
    assert call.data["request"] == {
        "method": "tools/call",
        "server": "shop",
        "arguments": {"item": "cup"},
    }
    value = taping.outcome(call)["value"]
    assert value["content"] == [{"type": "text", "text": "3"}]


def test_connecting_says_to_what_and_what_follows_is_not_inside_it(taping, notes):
    talk(notes)
    connect = taping.call("connect stdio")
    assert connect.data["request"]["args"] == [str(SERVER), str(notes)]
    assert taping.outcome(connect)["how"] == "returned"
    assert taping.call("initialize").parent == 0


def test_the_server_s_hints_are_the_effects_of_its_tools(taping, notes):
    talk(notes, ("stock", {"item": "a"}), ("discard", {"item": "b"}), ("pack", {"count": 0}))
    effects = {call.data["name"]: call.data.get("effect") for call in taping.calls("mcp")[3:]}
    assert effects == {"stock": "read", "discard": "irreversible", "pack": None}


def test_a_tool_that_failed_has_answered_with_an_error(taping, notes):
    (_, _, result) = talk(notes, ("discard", {"item": "lamp"}))
    assert dumped(result)["isError"] is True
    outcome = taping.outcome(taping.call("discard"))
    assert (outcome["how"], outcome["status"]) == ("returned", "error")
    assert "discard" in outcome["value"]["content"][0]["text"]


def test_a_session_is_served_though_the_server_does_not_exist(taping, notes, replaying):
    calls = [("stock", {"item": "cup"}), ("discard", {"item": "lamp"})]
    live = talk(notes, *calls)
    notes.unlink()
    with replaying(taping) as again:
        served = talk(notes, *calls)
        rows = [(one.data["name"], one.data.get("effect")) for one in again.calls("mcp")]
    assert served[:2] == live[:2]
    assert [dumped(one) for one in served[2:]] == [dumped(one) for one in live[2:]]
    assert [type(one) for one in served] == [type(one) for one in live]
    assert rows[3:] == [("stock", "read"), ("discard", "irreversible")]
    assert not notes.exists()


def test_progress_is_recorded_and_reported_again(taping, notes, replaying):
    heard = []

    async def progress(done, total, message) -> None:
        heard.append((done, total, message))

    talk(notes, ("pack", {"count": 2}), progress=progress)
    live = list(heard)
    assert live == [(1, 2, "box 1"), (2, 2, "box 2")]
    with replaying(taping):
        talk(notes, ("pack", {"count": 2}), progress=progress)
    assert heard == live * 2


def test_a_protocol_error_comes_back_as_mcp_s_own_exception(taping, notes, replaying):
    def ask() -> tuple:
        async def session():
            server = StdioServerParameters(command=sys.executable, args=[str(SERVER), str(notes)])
            async with stdio.stdio_client(server) as streams, ClientSession(*streams) as client:
                await client.initialize()
                try:
                    await client.get_prompt("no-such-prompt")
                except Exception as error:  # noqa: BLE001  its class is what is asked for
                    return type(error).__name__, error.error.code, error.error.message
                return None

        return anyio.run(session)

    live = ask()
    assert live is not None
    assert live[0].lower() == "mcperror"
    with replaying(taping):
        assert ask() == live


def test_a_server_that_cannot_be_started_cannot_be_in_a_replay_either(taping, notes, replaying):
    def fail() -> None:
        with pytest.raises(FileNotFoundError):
            talk(notes, command="/no/such/server")

    fail()
    with replaying(taping):
        fail()


def test_without_a_deck_the_library_s_own_context_manager_is_handed_out(hooks, notes):
    assert talk(notes)[0] == "shop"
    server = StdioServerParameters(command="true")
    opened = stdio.stdio_client(server)
    assert type(opened).__name__ == "_AsyncGeneratorContextManager"


if hasattr(mcp, "Client"):  # since 2.0

    def test_a_probe_of_the_newer_protocol_is_recorded_and_served(taping, replaying):
        from mcp.server.mcpserver import MCPServer

        def once() -> tuple[str, list[str]]:
            server = MCPServer("shop")
            ran = []

            @server.tool()
            def stock(item: str) -> int:
                """How many there are."""
                ran.append(item)
                return len(item)

            async def session():
                async with mcp.Client(server) as client:
                    gave = await client.call_tool("stock", {"item": "cup"})
                    return gave.content[0].text

            return anyio.run(session), ran

        assert once() == ("3", ["cup"])
        assert "server/discover" in [call.data["name"] for call in taping.calls("mcp")]
        with replaying(taping):
            assert once() == ("3", [])

"""MCP over HTTP: connecting is a call, and in a replay nobody is at the other end."""

import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from mcp import ClientSession
from mcp.client import sse, streamable_http

from playhead.hooks import registry

SERVER = Path(__file__).with_name("mcp_shop.py")


@pytest.fixture(autouse=True)
def _hooked(hooks):
    hooks("mcp")


@pytest.fixture
def shop(tmp_path):
    """A server and its address; `stop` it to be sure that nobody asks it."""
    argv = [sys.executable, str(SERVER), str(tmp_path / "notes"), "http"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        process.url = f"http://127.0.0.1:{process.stdout.readline().strip()}/mcp"
        yield process
        process.terminate()


def talk(url: str) -> list:
    async def session() -> list:
        opened = streamable_http.streamable_http_client(url)
        async with opened as (read, write, *_), ClientSession(read, write) as client:
            await client.initialize()
            result = await client.call_tool("stock", {"item": "spoon"})
            return [one.text for one in result.content]

    return anyio.run(session)


def test_a_session_over_http_is_recorded_and_served_when_the_server_is_gone(
    shop, taping, replaying
):
    assert talk(shop.url) == ["5"]
    assert taping.call("connect streamable").data["request"] == {"url": shop.url}
    shop.terminate()
    shop.wait()
    with replaying(taping) as again:
        assert talk(shop.url) == ["5"]
        names = [call.data["name"] for call in again.calls("mcp")]
    assert names == [call.data["name"] for call in taping.calls("mcp")]


def test_the_openers_are_put_back(hooks, taping):
    before = sse.sse_client, streamable_http.streamable_http_client
    registry.uninstall()
    after = sse.sse_client, streamable_http.streamable_http_client
    assert after == tuple(one.__wrapped__ for one in before)

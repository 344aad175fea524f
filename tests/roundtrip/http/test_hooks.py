"""The hooks as guests: nothing of them is left behind, and an unknown library is a hole."""

import http.client
import types

import aiohttp
import aiohttp.client_proto
import aiohttp.client_ws
import aiohttp.connector
import aiohttp.http_writer
import httpx
import httpx2
import pytest
import urllib3.connection
import urllib3.connectionpool
import websockets.asyncio.client
import websockets.asyncio.connection
import websockets.sync.client
import websockets.sync.connection

from playhead.hooks import registry
from playhead.hooks.guest import NotAsExpected, Patches

OWNERS = [
    httpx.Client,
    httpx.AsyncClient,
    httpx2.Client,
    httpx2.AsyncClient,
    http.client.HTTPConnection,
    http.client.HTTPSConnection,
    http.client.HTTPResponse,
    urllib3.connectionpool.HTTPConnectionPool,
    urllib3.connection.HTTPConnection,
    urllib3.connection.HTTPSConnection,
    aiohttp.connector.BaseConnector,
    aiohttp.connector.Connection,
    aiohttp.client_proto.ResponseHandler,
    aiohttp.client_ws.ClientWebSocketResponse,
    aiohttp.http_writer.StreamWriter,
    websockets.asyncio.client.connect,
    websockets.asyncio.connection.Connection,
    websockets.sync.client,
    websockets.sync.client.reconnect,
    websockets.sync.connection.Connection,
]


def members():
    return [dict(vars(owner)) for owner in OWNERS]


def test_uninstalling_puts_back_the_very_objects(studio):
    with studio.record() as take:
        pass
    before = members()
    with studio.replay(take):  # which has the hooks of a recording, and those on connections
        during = members()
    after = members()
    for owner, first, hooked, last in zip(OWNERS, before, during, after, strict=True):
        assert last.keys() == first.keys(), owner
        assert all(last[name] is first[name] for name in first), owner
        if owner is not http.client.HTTPResponse and owner is not websockets.sync.client:
            assert any(hooked[name] is not first.get(name) for name in hooked), owner


def test_installing_twice_hooks_once(studio):
    with studio.record():
        once = members()
        registry.install()
        assert members() == once


def test_every_hooked_library_is_named_on_the_tape(studio):
    with studio.record() as take:
        pass
    hooked = {hook["library"] for hook in take.of("hook")}
    assert {"httpx", "httpx2", "http.client", "urllib3.connectionpool", "aiohttp"} <= hooked
    assert {"websockets.asyncio.client", "websockets.sync.client"} <= hooked


@pytest.mark.parametrize("row", [row for row in registry.ROWS if row.boundary == "http"])
def test_a_library_that_is_not_what_we_think_is_refused(row):
    module, _, name = row.hook.partition(":")
    ours = __import__(f"playhead.hooks.{module}", fromlist=["hook"])
    stranger = types.ModuleType(row.watched)
    patches = Patches()
    with pytest.raises((NotAsExpected, AttributeError)):
        getattr(ours, name or "hook")(stranger, patches)
    patches.undo()


def test_nothing_is_recorded_when_the_deck_is_closed(site, studio):
    with studio.record() as take:
        pass
    httpx.get(f"{site.url}/echo")
    assert take.calls == []

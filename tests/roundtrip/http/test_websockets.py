"""Conversations over WebSockets: on the tape message by message, and from it without a network."""

import asyncio
import builtins
import importlib
import warnings

import aiohttp
import httpx2
import pytest
import websockets.asyncio.client
import websockets.exceptions
import websockets.sync.client

from playhead.errors import Divergence
from playhead.testing import HttpSite
from playhead.testing.scripted_llm.server_websocket import WebSocket, asks_for_websocket


def talk_async(url, says):
    async def talk():
        heard = []
        async with websockets.asyncio.client.connect(url) as socket:
            for message in says:
                await socket.send(message)
                heard.append(await socket.recv())
        return heard

    return asyncio.run(talk())


def talk_sync(url, says):
    heard = []
    with websockets.sync.client.connect(url) as socket:
        for message in says:
            socket.send(message)
            heard.append(socket.recv())
    return heard


def talk_aiohttp(url, says):
    async def talk():
        heard = []
        async with aiohttp.ClientSession() as session, session.ws_connect(url) as socket:
            for message in says:
                if isinstance(message, str):
                    await socket.send_str(message)
                else:
                    await socket.send_bytes(message)
                heard.append((await socket.receive()).data)
        return heard

    return asyncio.run(talk())


def talk_httpx2(url, says):
    heard = []
    with httpx2.Client() as client, client.websocket(url) as socket:
        for message in says:
            if isinstance(message, str):
                socket.send_text(message)
            else:
                socket.send_bytes(message)
            heard.append(socket.receive().data)
    return heard


def talk_httpx2_async(url, says):
    async def talk():
        heard = []
        async with httpx2.AsyncClient() as client, client.websocket(url) as socket:
            for message in says:
                if isinstance(message, str):
                    await socket.send_text(message)
                else:
                    await socket.send_bytes(message)
                heard.append((await socket.receive()).data)
        return heard

    return asyncio.run(talk())


TALKS = [talk_async, talk_sync, talk_aiohttp, talk_httpx2, talk_httpx2_async]


@pytest.fixture(params=TALKS, ids=lambda talk: talk.__name__.removeprefix("talk_"))
def talk(request):
    return request.param


@pytest.fixture
def echo():
    """A site whose socket answers each message with the same, in the same kind of frame."""
    with HttpSite({"/kinds": same_kind}) as served:
        yield served


async def same_kind(exchange):
    assert asks_for_websocket(exchange)
    socket = WebSocket(exchange)
    await socket.accept()
    while True:
        _, opcode, payload = await socket._frame()
        await socket._write(opcode, payload[:2] if opcode == 8 else payload)
        if opcode == 8:
            return


SAID = ["hello", "naïve →", b"\x00\xff\x01", "", "x" * 60_000]


def test_messages_are_on_the_tape_with_their_bounds_and_kinds(talk, echo, studio):
    url = echo.url.replace("http", "ws") + "/kinds"
    with studio.record() as take:
        heard = talk(url, SAID)
    assert heard == SAID
    call = take.call
    assert call.call["name"] == f"GET 127.0.0.1:{echo.port}/kinds"
    assert call.call["request"]["url"] == url
    assert call.head["status"] == 101
    assert call.how == "returned"
    assert call.outcome["close"]["by"] == "agent"
    kept = [
        (piece.stream, piece.data if piece.stream.endswith(".bytes") else piece.data.decode())
        for piece in call.pieces
    ]
    expected = []
    for message in SAID:
        kind = "" if isinstance(message, str) else ".bytes"
        expected += [(f"sent{kind}", message), (f"received{kind}", message)]
    assert kept == expected


def test_a_taped_conversation_needs_no_server(talk, echo, studio):
    url = echo.url.replace("http", "ws") + "/kinds"
    with studio.record() as take:
        heard = talk(url, SAID)
    echo.stop()
    with studio.replay(take) as mode:
        assert talk(url, SAID) == heard
    assert mode.left == []
    assert [p.data for p in mode.take.call.pieces] == [p.data for p in take.call.pieces]


def test_another_message_than_the_taped_one_is_a_divergence(talk, echo, studio):
    url = echo.url.replace("http", "ws") + "/kinds"
    with studio.record() as take:
        talk(url, ["hello", "world"])
    echo.stop()
    # httpx2 runs its sockets in a task group, which wraps what is raised in it.
    with studio.replay(take), pytest.raises((Divergence, builtins.ExceptionGroup)) as raised:
        talk(url, ["hello", "Lyon"])
    (divergence,) = getattr(raised.value, "exceptions", (raised.value,))
    assert isinstance(divergence, Divergence)
    assert "Taped: world" in str(divergence)
    assert "Now:   Lyon" in str(divergence)


def test_a_refused_handshake_is_refused_again(talk, site, studio):
    url = site.url.replace("http", "ws") + "/status/403"
    with studio.record() as take, pytest.raises(Exception) as first:
        talk(url, ["hello"])
    assert take.call.head["status"] == 403
    site.stop()
    with studio.replay(take), pytest.raises(Exception) as again:
        talk(url, ["hello"])
    assert type(again.value) is type(first.value)
    assert str(again.value) == str(first.value)


def test_a_refused_connection_is_raised_again(talk, site, studio):
    url = site.url.replace("http", "ws") + "/kinds"
    site.stop()
    with studio.record() as take, pytest.raises(Exception) as first:
        talk(url, ["hello"])
    assert take.call.how == "raised"
    with studio.replay(take), pytest.raises(Exception) as again:
        talk(url, ["hello"])
    assert type(again.value) is type(first.value)


def test_a_peer_that_closes_closes_again_with_the_same_code(studio):
    async def dismiss(exchange):
        socket = WebSocket(exchange)
        await socket.accept()
        await socket.send(b"bye")
        await socket._write(8, (4001).to_bytes(2, "big") + b"enough")
        await socket.receive()

    def talk(url):
        with websockets.sync.client.connect(url) as socket:
            heard = list(read_all(socket))
            return heard, socket.close_code, socket.close_reason

    with HttpSite({"/dismiss": dismiss}) as served:
        url = served.url.replace("http", "ws") + "/dismiss"
        with studio.record() as take:
            first = talk(url)
    assert first == (["bye"], 4001, "enough")
    assert take.call.outcome["close"] == {"code": 4001, "reason": "enough", "by": "peer"}
    with studio.replay(take):
        assert talk(url) == first


def read_all(socket):
    while True:
        try:
            yield socket.recv()
        except websockets.exceptions.ConnectionClosed:
            return


def test_a_lost_connection_is_lost_again(studio):
    async def vanish(exchange):
        socket = WebSocket(exchange)
        await socket.accept()
        await socket.send(b"only this")
        await socket.end("reset")

    async def talk(url):
        async with websockets.asyncio.client.connect(url) as socket:
            heard = [await socket.recv()]
            with pytest.raises(websockets.exceptions.ConnectionClosedError):
                await socket.recv()
            return heard

    with HttpSite({"/vanish": vanish}) as served:
        url = served.url.replace("http", "ws") + "/vanish"
        with studio.record() as take:
            assert asyncio.run(talk(url)) == ["only this"]
    assert take.call.how == "cut"
    with studio.replay(take):
        assert asyncio.run(talk(url)) == ["only this"]


def test_fragments_are_one_message(site, studio):
    async def talk(url):
        async with websockets.asyncio.client.connect(url) as socket:
            await socket.send(["a", "b", "c"])
            return [part async for part in socket.recv_streaming()]

    url = site.url.replace("http", "ws") + "/ws"
    with studio.record() as take:
        heard = asyncio.run(talk(url))
    assert "".join(heard) == "abc"
    assert [(p.stream, p.data) for p in take.call.pieces] == [
        ("sent", b"abc"),
        ("received", b"abc"),
    ]
    site.stop()
    with studio.replay(take):
        assert "".join(asyncio.run(talk(url))) == "abc"


def test_a_client_that_is_not_followed_is_a_hole_once_it_is_used(studio):
    legacy = import_legacy()
    with studio.record() as take:
        assert take.of("hole") == []
        asyncio.run(connect_nowhere(legacy))
    (hole,) = take.of("hole")
    assert hole["what"] == "websockets.legacy.client"
    with studio.replay(take), pytest.raises(Divergence, match="not followed"):
        asyncio.run(connect_nowhere(legacy))


def import_legacy():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("websockets.legacy.client")


async def connect_nowhere(legacy):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(OSError):
            await legacy.connect("ws://127.0.0.1:9/")

"""Servers behind TLS, and behind the proxies of corporate networks."""

import asyncio
import ssl
from pathlib import Path

import pytest

from playhead.launch.proxy import live
from playhead.launch.proxy.routes import Origin

HERE = Path(__file__).parent
CERTIFICATE = HERE / "loopback.crt"


@pytest.fixture(autouse=True)
def trust(monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    live.context.cache_clear()
    yield
    live.context.cache_clear()


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"hello " + await reader.readline())
    await writer.drain()
    writer.close()
    await writer.wait_closed()


class Tunnel:
    """What a corporate network has in front of the world; `seen` are the heads of its requests."""

    def __init__(self, status: bytes = b"200 Connection established") -> None:
        self.status = status
        self.seen: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.seen.append(head)
        writer.write(b"HTTP/1.1 " + self.status + b"\r\n\r\n")
        if self.status.startswith(b"200"):
            host, _, port = head.split()[1].decode().partition(":")
            there = await asyncio.open_connection(host, int(port))
            await asyncio.gather(_pass(reader, there[1]), _pass(there[0], writer))
            await there[1].wait_closed()
        writer.close()
        await writer.wait_closed()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def listening(handler, context: ssl.SSLContext | None = None) -> tuple:
    server = await asyncio.start_server(handler, "127.0.0.1", 0, ssl=context)
    return server, server.sockets[0].getsockname()[1]


async def asked(origin: Origin, env: dict[str, str]) -> bytes:
    reader, writer = await live.connect(origin, env)
    writer.write(b"you\n")
    answer = await reader.readline()
    writer.close()
    await writer.wait_closed()
    return answer


async def behind(tunnel: Tunnel | None, **env: str) -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, HERE / "loopback.key")
    server, port = await listening(greet, context)
    gate, there = await listening((tunnel or Tunnel()).serve)
    if tunnel is not None:
        env = {**env, "HTTPS_PROXY": f"http://ada:s%20cret@127.0.0.1:{there}"}
    async with server, gate:
        try:
            return await asked(Origin("https", "127.0.0.1", port), env)
        finally:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            await asyncio.gather(*others, return_exceptions=True)


def test_a_server_behind_tls_is_asked_as_any_other():
    assert asyncio.run(behind(None)) == b"hello you\n"


def test_a_networks_own_proxy_is_gone_through():
    tunnel = Tunnel()
    assert asyncio.run(behind(tunnel)) == b"hello you\n"
    (head,) = tunnel.seen
    assert head.startswith(b"CONNECT 127.0.0.1:")
    assert b"Proxy-Authorization: Basic YWRhOnMgY3JldA==" in head


def test_a_server_that_is_spared_the_proxy_is_asked_directly():
    tunnel = Tunnel()
    assert asyncio.run(behind(tunnel, NO_PROXY="example.com,127.0.0.1")) == b"hello you\n"
    assert tunnel.seen == []


def test_a_proxy_that_refuses_is_a_connection_that_fails():
    with pytest.raises(ConnectionError, match="407"):
        asyncio.run(behind(Tunnel(b"407 Proxy Authentication Required")))


def test_a_certificate_that_nobody_trusts_is_refused(monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", "/dev/null")
    with pytest.raises(ssl.SSLError):
        asyncio.run(behind(None))

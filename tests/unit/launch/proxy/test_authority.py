"""TLS interception, for those who ask for it."""

import asyncio
import http.client
import ssl
from pathlib import Path

import pytest

from playhead.launch.proxy import live
from playhead.launch.proxy.authority import Authority

HERE = Path(__file__).parent


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.readuntil(b"\r\n\r\n"):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecret")


@pytest.fixture
def trust(monkeypatch):
    """The proxy trusts the server behind it."""
    monkeypatch.setenv("SSL_CERT_FILE", str(HERE / "loopback.crt"))
    live.context.cache_clear()
    yield
    live.context.cache_clear()


def ask(proxy, port: int, authority: Authority) -> bytes:
    context = ssl.create_default_context(cafile=authority.certificate)
    client = http.client.HTTPSConnection("127.0.0.1", proxy.port, context=context, timeout=20)
    client.set_tunnel("localhost", port)
    client.request("GET", "/thing")
    body = client.getresponse().read()
    client.close()
    return body


def test_what_goes_through_a_tunnel_is_on_the_tape_and_comes_from_it(room, trust, tls_server):
    authority = Authority(room.folder / "ca")
    with tls_server(_answer) as port, room.recording("http://unused", authority=authority) as then:
        assert ask(then, port, authority) == b"secret"
    (call,) = then.loaded.calls
    assert call.request["url"] == f"https://localhost:{port}/thing"
    with room.replaying(then, authority=authority) as now:
        assert ask(now, port, authority) == b"secret"


def test_the_key_is_for_its_owner_alone_and_the_authority_stays(tmp_path):
    made = Authority(tmp_path / "ca")
    assert (tmp_path / "ca" / "ca.key").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "ca").stat().st_mode & 0o777 == 0o700
    before = made.certificate.read_bytes()
    assert Authority(tmp_path / "ca").certificate.read_bytes() == before


def test_without_being_asked_for_there_are_no_tunnels(room, wire):
    with room.recording("http://unused") as then, wire(then.port) as client:
        client.ask("example.com:443", "CONNECT")
        assert client.rest().startswith(b"HTTP/1.1 400 ")

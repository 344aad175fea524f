"""The way to the real server. Knows TLS and the tunnels of corporate networks; not what is asked."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import functools
import os
import socket
import ssl
from collections.abc import Mapping
from urllib.parse import SplitResult, unquote, urlsplit

from playhead.launch.proxy.routes import Origin

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_PIECE = 64 * 1024
_LONGEST_CONNECT_S = 60.0


class NoTunnel(ConnectionError):
    """The network's own proxy does not let us through."""


async def connect(origin: Origin, env: Mapping[str, str]) -> Stream:
    """A connection to that server. OSError: there is none to be had."""
    try:
        return await asyncio.wait_for(_connect(origin, env), _LONGEST_CONNECT_S)
    except asyncio.TimeoutError:
        raise TimeoutError(f"{origin} does not answer") from None


async def _connect(origin: Origin, env: Mapping[str, str]) -> Stream:
    host = origin.host.strip("[]")
    if origin.scheme == "http":
        return await asyncio.open_connection(host, origin.port, limit=_PIECE)
    tunnel = _tunnel(origin, env)
    if tunnel is None:
        return await asyncio.open_connection(
            host, origin.port, limit=_PIECE, ssl=context(), server_hostname=host
        )
    return await _through(tunnel, origin, host)


async def _through(tunnel: str, origin: Origin, host: str) -> Stream:
    """Ask the network's proxy first, on the bare socket: a stream that becomes another is closed by
    its own `__del__`.
    """
    where = urlsplit(tunnel if "://" in tunnel else f"http://{tunnel}")
    loop = asyncio.get_running_loop()
    (family, _, _, _, address), *_ = await loop.getaddrinfo(
        where.hostname, where.port or 80, type=socket.SOCK_STREAM
    )
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        await loop.sock_connect(connection, address)
        await loop.sock_sendall(connection, _asking(where, f"{host}:{origin.port}"))
        await _let_through(connection)
        return await asyncio.open_connection(
            sock=connection, limit=_PIECE, ssl=context(), server_hostname=host
        )
    except BaseException:
        connection.close()
        raise


async def _let_through(connection: socket.socket) -> None:
    """NoTunnel says what the network's proxy said instead."""
    loop = asyncio.get_running_loop()
    answer = b""
    while not answer.endswith(b"\r\n\r\n") and (more := await loop.sock_recv(connection, 4096)):
        answer += more
    if answer.split(b" ", 2)[1:2] != [b"200"]:
        said = answer.partition(b"\r\n")[0].decode("latin-1")
        raise NoTunnel(f"the network's proxy answers {said!r}")


def _asking(where: SplitResult, place: str) -> bytes:
    lines = [f"CONNECT {place} HTTP/1.1", f"Host: {place}"]
    if where.username:
        secret = f"{unquote(where.username)}:{unquote(where.password or '')}"
        lines.append(f"Proxy-Authorization: Basic {base64.b64encode(secret.encode()).decode()}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _tunnel(origin: Origin, env: Mapping[str, str]) -> str | None:
    """The network's own proxy for this server, as the variables of curl and others say."""
    names = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
    proxy = next((env[name] for name in names if env.get(name)), None)
    spared = env.get("no_proxy") or env.get("NO_PROXY") or ""
    return None if _is_spared(origin.host, spared) else proxy


def _is_spared(host: str, spared: str) -> bool:
    for word in spared.replace(" ", "").lower().split(","):
        name = word.partition(":")[0].lstrip("*").lstrip(".")
        if word == "*" or (name and (host == name or host.endswith(f".{name}"))):
            return True
    return False


@functools.cache
def context() -> ssl.SSLContext:
    """Whom to trust: as the system and SSL_CERT_FILE say, and as node is told."""
    made = ssl.create_default_context()
    if extra := os.environ.get("NODE_EXTRA_CA_CERTS"):
        with contextlib.suppress(OSError):
            made.load_verify_locations(extra)
    made.set_alpn_protocols(["http/1.1"])
    return made

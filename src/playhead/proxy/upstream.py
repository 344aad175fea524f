"""The way to the real server. Knows TLS and the tunnels of corporate networks; not what is asked."""

from __future__ import annotations

import asyncio
import base64
import functools
import ssl
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from playhead.proxy.routes import Origin

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
            host, origin.port, limit=_PIECE, ssl=_context(), server_hostname=host
        )
    return await _through(tunnel, origin, host)


async def _through(tunnel: str, origin: Origin, host: str) -> Stream:
    where = urlsplit(tunnel if "://" in tunnel else f"http://{tunnel}")
    reader, writer = await asyncio.open_connection(where.hostname, where.port or 80, limit=_PIECE)
    lines = [f"CONNECT {host}:{origin.port} HTTP/1.1", f"Host: {host}:{origin.port}"]
    if where.username:
        secret = f"{unquote(where.username)}:{unquote(where.password or '')}"
        lines.append(f"Proxy-Authorization: Basic {base64.b64encode(secret.encode()).decode()}")
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
    answer = await reader.readuntil(b"\r\n\r\n")
    if answer.split(b" ", 2)[1:2] != [b"200"]:
        writer.close()
        raise NoTunnel(f"the proxy {where.hostname} answers {answer[:40]!r}")
    loop = asyncio.get_running_loop()
    protocol = writer.transport.get_protocol()
    tls = await loop.start_tls(writer.transport, protocol, _context(), server_hostname=host)
    if tls is None:
        raise NoTunnel(f"the proxy {where.hostname} hung up")
    return reader, asyncio.StreamWriter(tls, protocol, reader, loop)


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
def _context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context

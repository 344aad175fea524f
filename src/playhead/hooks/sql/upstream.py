"""Connect to the PostgreSQL server that a connection string names, as libpq would: addresses, TLS, password file.

Knows the parameters of libpq and its environment variables; does not know tapes. Uses `_socket`, below the hooks.
"""

from __future__ import annotations

import _socket
import os
import socket
import stat
from typing import TYPE_CHECKING

from playhead.hooks.sql import pgwire
from playhead.host.later import Later
from playhead.host.lean import NamedTuple

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping
    from typing import Any
else:
    ssl = Later("ssl")

_FOLDERS = ("/var/run/postgresql", "/tmp")  # noqa: S108  where servers have their sockets
# Settings that the relay does not support. A connection with one of them is left alone, and makes the run partial.
_BEYOND_US = ("service", "channel_binding", "gssencmode", "sslcrl", "sslcrldir", "require_auth")
_HARMLESS = {
    "channel_binding": ("prefer", "disable"),
    "gssencmode": ("prefer", "disable"),
    "require_auth": (),
}
_VARIABLES = {
    "host": "PGHOST",
    "hostaddr": "PGHOSTADDR",
    "port": "PGPORT",
    "user": "PGUSER",
    "dbname": "PGDATABASE",
    "password": "PGPASSWORD",
    "passfile": "PGPASSFILE",
    "service": "PGSERVICE",
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
    "channel_binding": "PGCHANNELBINDING",
    "gssencmode": "PGGSSENCMODE",
    "connect_timeout": "PGCONNECT_TIMEOUT",
}


class PostgresServer(NamedTuple):
    """One server of a connection string."""

    host: str
    address: str
    port: int

    @property
    def is_local(self) -> bool:
        return self.host.startswith(("/", "@")) and not self.address

    @property
    def path(self) -> str:
        name = f"{self.host}/.s.PGSQL.{self.port}"
        return "\0" + name[1:] if name.startswith("@") else name

    def shown(self) -> str:
        if self.is_local:
            return f"{self.host}/.s.PGSQL.{self.port}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class PostgresTarget(NamedTuple):
    """The servers and settings that a connection string names."""

    servers: list[PostgresServer]
    settings: dict[str, str]

    @property
    def name(self) -> str:
        return self.servers[0].shown()


def target_of(given: Mapping[str, Any]) -> PostgresTarget | str:
    """Return the target of these parameters and of the environment, or the reason why a relay cannot reach it."""
    settings = {
        name: os.environ[variable]
        for name, variable in _VARIABLES.items()
        if os.environ.get(variable)
    }
    settings.update({name: str(value) for name, value in given.items() if value not in (None, "")})
    for name in _BEYOND_US:
        if name in settings and settings[name] not in _HARMLESS.get(name, ()):
            return f"{name}={settings[name]} is not supported"
    hosts, addresses = settings.get("host", "").split(","), settings.get("hostaddr", "").split(",")
    ports = settings.get("port", "").split(",")
    servers = []
    for index in range(max(len(hosts), len(addresses))):
        address = addresses[index] if index < len(addresses) else ""
        host = (hosts[index] if index < len(hosts) else "") or address
        port = int((ports[index] if index < len(ports) else ports[-1]) or 5432)
        servers.append(PostgresServer(host or _folder(port), address, port))
    return PostgresTarget(servers, settings)


def _folder(port: int) -> str:
    for folder in _FOLDERS:
        if os.path.exists(f"{folder}/.s.PGSQL.{port}"):
            return folder
    return _FOLDERS[0]


def connect(target: PostgresTarget) -> tuple[Any, PostgresServer]:
    """Return a connected socket, plain or TLS, to the first server that answers. Raise OSError if none does."""
    problem: OSError | None = None
    timeout = float(target.settings.get("connect_timeout") or 0) or None
    for server in target.servers:
        try:
            return _encrypted(_opened(server, timeout), server, target.settings, timeout), server
        except OSError as error:
            problem = error
            problem.server = server  # type: ignore[attr-defined]
    raise problem or OSError("the connection string names no server")


def _opened(server: PostgresServer, timeout: float | None) -> Any:
    if server.is_local:
        made = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        made.connect(server.path)
        return made
    found = _socket.getaddrinfo(server.address or server.host, server.port, 0, _socket.SOCK_STREAM)
    problem: OSError | None = None
    for family, kind, proto, _, address in found:
        made = _socket.socket(family, kind, proto)
        made.settimeout(timeout)
        try:
            made.connect(address)
        except OSError as error:
            made.close()
            problem = error
            continue
        made.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
        made.settimeout(None)
        return made
    raise problem or OSError(f"{server.host} has no address")


def _encrypted(
    made: Any, server: PostgresServer, settings: Mapping[str, str], timeout: float | None
) -> Any:
    mode = settings.get("sslmode", "prefer")
    if server.is_local or mode in ("disable", "allow"):
        return made
    made.settimeout(timeout)
    made.sendall(pgwire.startup(pgwire.SSL_REQUEST))
    answer = made.recv(1)
    made.settimeout(None)
    if answer != b"S":
        if mode == "prefer":
            return made
        made.close()
        raise OSError(0, "server does not support SSL, but SSL was required")
    plain = socket.socket(fileno=made.detach())
    try:
        return _context(mode, settings).wrap_socket(
            plain,
            server_hostname=server.host if _is_name(server.host) or mode == "verify-full" else None,
        )
    except OSError:
        plain.close()
        raise


def _is_name(host: str) -> bool:
    return not (":" in host or host.replace(".", "").isdigit())


def _context(mode: str, settings: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = mode == "verify-full"
    root = settings.get("sslrootcert") or os.path.expanduser("~/.postgresql/root.crt")
    if root == "system":
        context.load_default_certs()
    elif os.path.exists(root):
        context.load_verify_locations(root)
    elif mode in ("prefer", "require"):
        context.verify_mode = ssl.CERT_NONE
    certificate = settings.get("sslcert") or os.path.expanduser("~/.postgresql/postgresql.crt")
    if os.path.exists(certificate):
        key = settings.get("sslkey") or os.path.expanduser("~/.postgresql/postgresql.key")
        context.load_cert_chain(certificate, key, settings.get("sslpassword"))
    return context


def password_of(target: PostgresTarget) -> str | None:
    """Return the password from the password file. libpq looks it up by the server's name, and would look for the
    relay's.
    """
    path = target.settings.get("passfile") or os.path.expanduser("~/.pgpass")
    try:
        if os.stat(path).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            return None  # libpq refuses it too
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    server = target.servers[0]
    user = target.settings.get("user", "")
    host = "localhost" if server.is_local else server.host
    wanted = (host, str(server.port), target.settings.get("dbname") or user, user)
    for line in lines:
        parts = line.replace("\\\\", "\x01").replace("\\:", "\x02").split(":")
        parts = [one.replace("\x01", "\\").replace("\x02", ":") for one in parts]
        if len(parts) >= 5 and all(a in ("*", b) for a, b in zip(parts, wanted)):  # noqa: B905
            return parts[4]
    return None


def refusal(error: OSError, target: PostgresTarget) -> str:
    """Return the text with which libpq reports that it cannot connect."""
    server = getattr(error, "server", target.servers[0])
    what = error.strerror or str(error)
    if server.is_local:
        return (
            f'connection to server on socket "{server.shown()}" failed: {what}\n'
            "\tIs the server running locally and accepting connections on that socket?\n"
        )
    return (
        f'connection to server at "{server.host}", port {server.port} failed: {what}\n'
        "\tIs the server running on that host and accepting TCP/IP connections?\n"
    )

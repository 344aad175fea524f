"""Start the server, and find the running server of a store. Knows uvicorn, addresses, and the store's server file."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from ssl import PROTOCOL_TLS_SERVER, SSLContext, SSLError
from threading import Thread
from typing import Any

import uvicorn
from starlette.applications import Starlette

from playhead import clock
from playhead.errors import StoreError, UsageError
from playhead.tape.store import open_store

FILE = "server.json"
PORT = 7411
_LONGEST_HEAD = 64 * 1024
_GRACE_S = 3.0
_ENDED = b"\0"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_REASONS_TO_STOP = (_ENDED, *(bytes((number,)) for number in _SIGNALS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The address of a server. `url` is for clients on this machine."""

    host: str
    port: int
    token: str | None = None
    scheme: str = "http"
    root_path: str = ""

    @property
    def url(self) -> str:
        unspecified = _is_address(self.host) and ip_address(self.host).is_unspecified
        host = "127.0.0.1" if unspecified else self.host
        return f"{self.scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"

    def at(self, path: str) -> str:
        """Return an address that opens the page, including the token."""
        return f"{self.url}{self.root_path}{path}" + (f"?token={self.token}" if self.token else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """How requests arrive: by TLS, through reverse proxies at these addresses, or directly."""

    certificate: str | None = None
    key: str | None = None
    proxies: tuple[str, ...] = ()

    @property
    def scheme(self) -> str:
        return "http" if self.certificate is None else "https"


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the address. Host names do not count: they may resolve to another
    address.
    """
    return host == "localhost" or (_is_address(host) and ip_address(host).is_loopback)


def listen(host: str, port: int | None) -> socket.socket:
    """Return a bound socket. `port` None: the usual port, or any other if that is taken."""
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    for wanted in (PORT, 0) if port is None else (port,):
        listener = socket.socket(kind, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, wanted))
            # Listen now instead of when the server is ready: a browser that connects early only has to wait.
            listener.listen(2048)
        except OSError as error:
            listener.close()
            if port is None and wanted:
                continue
            raise UsageError(
                f"Cannot listen on {host} port {wanted} ({error.strerror or error}). "
                "Choose another address with --host, or another port with --port (0: any free port)."
            ) from None
        return listener
    raise UsageError(f"Cannot listen on {host}.")


def server_for(application: Starlette, wire: Wire = Wire()) -> uvicorn.Server:
    """Return the server. UsageError: the certificate and its key cannot be used."""
    if wire.certificate is not None:
        try:
            SSLContext(PROTOCOL_TLS_SERVER).load_cert_chain(wire.certificate, wire.key)
        except (OSError, SSLError) as error:
            raise UsageError(
                f"{wire.certificate} and {wire.key} are not a certificate with its key ({error})."
            ) from None
    return uvicorn.Server(
        uvicorn.Config(
            application,
            http="h11",
            ws="none",
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            # Forwarding headers are believed only if they come from these addresses.
            proxy_headers=bool(wire.proxies),
            forwarded_allow_ips=list(wire.proxies),
            ssl_certfile=wire.certificate,
            ssl_keyfile=wire.key,
            h11_max_incomplete_event_size=_LONGEST_HEAD,
            timeout_keep_alive=30,
            # Pages that follow a run stay connected forever: shutdown does not wait for them.
            timeout_graceful_shutdown=1,
        )
    )


def run_until_interrupted(server: uvicorn.Server, listener: socket.socket) -> bool:
    """Serve until SIGINT or SIGTERM. Return False if a request is still being answered after a grace.

    The server runs in a daemon thread: reading a long tape cannot be interrupted, and shutdown must not wait for it.
    """
    woken, waker = socket.socketpair()
    waker.setblocking(False)

    def serve() -> None:
        try:
            server.run(sockets=[listener])
        finally:
            with suppress(OSError):  # closed: the grace is over
                waker.send(_ENDED)

    thread = Thread(target=serve, daemon=True)
    with woken, waker, _signals_wake(waker):
        thread.start()
        while woken.recv(1) not in _REASONS_TO_STOP:
            pass
        server.should_exit = True
        thread.join(_GRACE_S)
    return not thread.is_alive()


@contextmanager
def _signals_wake(waker: socket.socket) -> Iterator[None]:
    """Write to `waker` on SIGINT and SIGTERM while inside.

    The kernel may give a signal to the server's thread. Python then runs the handler when the main thread wakes up,
    and a main thread that waits for a lock (as `Thread.join` does) never wakes up. The C handler writes to the
    wake-up descriptor from every thread. The Python handler must do nothing: an exception that interrupts
    `Thread.join` makes Python 3.11 take the thread for ended.
    """
    before = {number: signal.signal(number, lambda *_: None) for number in _SIGNALS}
    descriptor = signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(descriptor)
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def announced(home: Path, address: Address) -> Iterator[None]:
    """Publish the server's address and token for `playhead open` while inside. Readable by the owner only."""
    path = open_store(home) / FILE
    members = {
        "host": address.host,
        "port": address.port,
        "token": address.token,
        "scheme": address.scheme,
        "root_path": address.root_path,
        "pid": clock.pid(),
        "birth": clock.process_birth(clock.pid()) or "",
    }
    part = path.with_name(f"{FILE}.{clock.pid()}.part")
    try:
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            json.dump(members, file)
        part.replace(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be written ({error.strerror}).") from error
    try:
        yield
    finally:
        # Another server may have started since: then the file belongs to that server.
        if _members(path).get("pid") == clock.pid():
            with suppress(FileNotFoundError):
                path.unlink()


def running(home: Path) -> Address | None:
    """Return the running server of this store, if there is one."""
    members = _members(home / FILE)
    pid, host, port = members.get("pid"), members.get("host"), members.get("port")
    if not isinstance(pid, int) or not isinstance(host, str) or not isinstance(port, int):
        return None
    birth = clock.process_birth(pid)
    if birth is None or members.get("birth") not in ("", birth):
        return None
    token = members.get("token")
    scheme = "https" if members.get("scheme") == "https" else "http"
    root_path = members.get("root_path")
    return Address(
        host=host,
        port=port,
        token=token if isinstance(token, str) else None,
        scheme=scheme,
        root_path=root_path if isinstance(root_path, str) else "",
    )


def _members(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True

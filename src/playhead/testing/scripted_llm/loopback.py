"""An HTTP server on a thread with its own event loop. Knows connections; does not know what is served.

Its own thread, so that an agent that blocks its event loop still gets answers, and a plain selector loop, so
that it does not run on the event loop that the agent installs.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from types import TracebackType
from typing import Self

from playhead.testing.scripted_llm.server_http1 import (
    HEAD_LIMIT,
    BadRequest,
    ServedExchange,
    read_request,
)

_BACKLOG = 512
_log = logging.getLogger(__name__)


class LoopbackServer:
    """Start, stop, and the life of each connection; subclasses answer in `handle`."""

    def __init__(self, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self.host = host
        self._wanted_port = port
        self._listener: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()
        self._conversations: set[asyncio.Task[None]] = set()

    async def handle(self, exchange: ServedExchange) -> None:
        raise NotImplementedError

    @property
    def port(self) -> int:
        if self._listener is None:
            raise RuntimeError("The server is not running: use it in a `with`, or call start().")
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def url(self) -> str:
        """The base URL, without a slash at its end."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def start(self) -> None:
        """Listen. Raises OSError if the port is not available."""
        if self._thread is not None:
            raise RuntimeError(f"The server is already running, on {self.url}.")
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listener = socket.create_server(
            (self.host, self._wanted_port), family=family, backlog=_BACKLOG
        )
        listener.setblocking(False)
        self._listener = listener
        self._loop = asyncio.SelectorEventLoop()
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(
            target=self._run, args=(self._loop, listener), name=type(self).__name__, daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Close the port and every connection. A second call does nothing."""
        thread, self._thread, self._listener = self._thread, None, None
        if thread is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
            thread.join()

    def wait(self) -> None:
        """Block until the server is stopped from another thread, or the user interrupts."""
        if self._thread is not None:
            self._thread.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.stop)

    def _run(self, loop: asyncio.AbstractEventLoop, listener: socket.socket) -> None:
        try:
            loop.run_until_complete(self._serve(loop, listener))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()

    async def _serve(self, loop: asyncio.AbstractEventLoop, listener: socket.socket) -> None:
        # Not asyncio.start_server: a connection that arrives while that server closes fails an assertion within asyncio
        # and leaks its socket (seen on 3.11, 3.12 and 3.13).
        loop.add_reader(listener, self._accept, listener)
        await self._stopping.wait()
        loop.remove_reader(listener)
        listener.close()
        for conversation in self._conversations:
            conversation.cancel()
        if self._conversations:
            await asyncio.wait(self._conversations)

    def _accept(self, listener: socket.socket) -> None:
        try:
            wire, _ = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return  # The client disconnected before its connection was handled.
        wire.setblocking(False)
        # asyncio does this for its own servers. Without it the pieces of a stream wait for the client's delayed
        # acknowledgement: 40 ms, and then they all arrive at once.
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        conversation = asyncio.ensure_future(self._converse(wire))
        self._conversations.add(conversation)
        conversation.add_done_callback(self._conversations.discard)
        # For a conversation that is cancelled before it has begun, and so never closes its socket.
        conversation.add_done_callback(lambda _: wire.close())

    async def _converse(self, wire: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=wire, limit=HEAD_LIMIT)
        try:
            await self._answer_all(reader, writer)
            writer.close()
            await writer.wait_closed()
        except ConnectionError:
            _log.debug("the client left", exc_info=True)
        finally:
            # Not close(), which waits until the client has read everything, even if it no longer reads.
            writer.transport.abort()

    async def _answer_all(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                request = await read_request(reader, writer)
            except BadRequest as error:
                writer.write(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n")
                _log.warning("%s: %s", type(self).__name__, error)
                return
            if request is None:
                return
            exchange = ServedExchange(request, reader, writer)
            await self._answer(exchange)
            if not exchange.keeps_alive:
                return

    async def _answer(self, exchange: ServedExchange) -> None:
        try:
            await self.handle(exchange)
        except ConnectionError:
            raise
        except Exception as error:  # noqa: BLE001  a route is user code; its client gets the error
            _log.exception("%s could not answer %s", type(self).__name__, exchange.request.path)
            message = f"{type(self).__name__} failed: {type(error).__name__}: {error}"
            if exchange.started:
                await exchange.end("close")
            else:
                body = {"type": "error", "error": {"type": "api_error", "message": message}}
                await exchange.answer_json(500, body, [("x-should-retry", "false")])

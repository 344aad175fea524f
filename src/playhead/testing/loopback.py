"""An HTTP server on a thread and an event loop of its own. Knows connections; not what is served.

A thread of its own, so that an agent which blocks its own loop still gets its answers, and a
plain selector loop, so that whatever event loop the agent installs is not ours.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import Future
from types import TracebackType
from typing import Self, cast

from playhead.testing.http1 import HEAD_LIMIT, BadRequest, Exchange, read_request

_log = logging.getLogger(__name__)


class LoopbackServer:
    """Start, stop, and the life of each connection; subclasses answer in `handle`."""

    def __init__(self, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self.host = host
        self._wanted_port = port
        self._port: int | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._conversations: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def handle(self, exchange: Exchange) -> None:
        raise NotImplementedError

    @property
    def port(self) -> int:
        if self._port is None:
            raise RuntimeError("The server is not running: use it in a `with`, or call start().")
        return self._port

    @property
    def url(self) -> str:
        """The base URL, without a slash at its end."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def start(self) -> None:
        """Listen. Raises OSError when the port cannot be had."""
        started: Future[int] = Future()
        self._thread = threading.Thread(
            target=self._run, args=(started,), name=type(self).__name__, daemon=True
        )
        self._thread.start()
        self._port = started.result()

    def stop(self) -> None:
        """Close the port and every connection; stopping twice is stopping once."""
        thread, self._thread, self._port = self._thread, None, None
        if thread is None:
            return
        if self._loop is not None and self._stopping is not None:
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
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.stop)

    def _run(self, started: Future[int]) -> None:
        loop = asyncio.SelectorEventLoop()
        try:
            loop.run_until_complete(self._serve(started))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()

    async def _serve(self, started: Future[int]) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        try:
            server = await asyncio.start_server(
                self._converse, self.host, self._wanted_port, limit=HEAD_LIMIT
            )
        except OSError as error:
            started.set_exception(error)
            return
        started.set_result(server.sockets[0].getsockname()[1])
        await self._stopping.wait()
        server.close()
        await self._hang_up()

    async def _hang_up(self) -> None:
        open_ones = dict(self._conversations)
        for conversation, writer in open_ones.items():
            conversation.cancel()
            # Not close(): that waits until a client that no longer reads has read it all.
            writer.transport.abort()
        closings = [writer.wait_closed() for writer in open_ones.values()]
        await asyncio.gather(*open_ones, *closings, return_exceptions=True)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self._conversations[task] = writer
        try:
            await self._answer_all(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            # The client left, or the server stops. asyncio's streams log a cancelled
            # connection as an error on some versions, so it ends here.
            _log.debug("connection ended", exc_info=True)
        finally:
            writer.close()
            del self._conversations[task]

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
            exchange = Exchange(request, reader, writer)
            await self._answer(exchange)
            if not exchange.keeps_alive:
                return

    async def _answer(self, exchange: Exchange) -> None:
        try:
            await self.handle(exchange)
        except ConnectionError:
            raise
        except Exception as error:  # noqa: BLE001  a route is anybody's code; its client is told
            _log.exception("%s could not answer %s", type(self).__name__, exchange.request.path)
            message = f"{type(self).__name__} failed: {type(error).__name__}: {error}"
            if exchange.started:
                await exchange.end("close")
            else:
                body = {"type": "error", "error": {"type": "api_error", "message": message}}
                await exchange.answer_json(500, body, [("x-should-retry", "false")])

"""Listen, and serve every client until the proxy is stopped. Knows asyncio; does not know why the proxy runs."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping

from playhead.launch.proxy.authority import Authority
from playhead.launch.proxy.connection import Client, Listening
from playhead.launch.proxy.peer_user import may_connect
from playhead.launch.proxy.ports import SparePorts
from playhead.launch.proxy.proxied_request import LONGEST_HEAD
from playhead.launch.proxy.routes import SPARE, Origin


class Proxy:
    """Serves `listeners`; each serves one origin, or (None) all origins that agents use."""

    def __init__(
        self,
        listeners: Mapping[Origin, socket.socket] | Mapping[None, socket.socket],
        env: Mapping[str, str],
        *,
        paced: bool = False,
        authority: Authority | None = None,
        token: str = "",
        spares: SparePorts | None = None,
    ) -> None:
        """The run's `token` lets its processes name other origins; without a token, no other origin can be named."""
        self._listeners = listeners
        self._env = env
        self._paced = paced
        self._authority = authority
        self._token = token
        self._spares = spares
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve_until(self, over: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        # Not asyncio.start_server: a connection that arrives while that server closes leaks its socket.
        for origin, listener in self._listeners.items():
            loop.add_reader(listener, self._accept, listener, origin)
        await over.wait()
        for listener in self._listeners.values():
            loop.remove_reader(listener)
            listener.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, listener: socket.socket, origin: Origin | None) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError:
                return  # out of descriptors: the client waits in the queue until one is free
            connection.setblocking(False)
            if not may_connect(connection):
                connection.close()  # another user of the machine: not a part of this run
                continue
            if origin is not None and origin.scheme == SPARE:
                if self._spares is not None and self._spares.is_withdrawn:
                    connection.close()
                    continue
                port = listener.getsockname()[1]
                origin = None if self._spares is None else self._spares.origin_at(port)
            task = asyncio.get_running_loop().create_task(self._serve(connection, origin))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, connection: socket.socket, origin: Origin | None) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=LONGEST_HEAD, loop=loop)
        protocol = Listening(reader)
        transport, _ = await loop.connect_accepted_socket(lambda: protocol, connection)
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        client = Client(
            reader,
            writer,
            origin,
            self._env,
            paced=self._paced,
            authority=self._authority,
            token=self._token,
        )
        await client.serve()

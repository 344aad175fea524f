"""The proxy as a service of the sidecar. Knows when it begins and ends; not HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from playhead.host.later import Later
from playhead.launch.proxy.ports import ProxyPorts
from playhead.launch.sidecar.services import Service, SharedDeck

if TYPE_CHECKING:
    import asyncio

    from playhead.launch.proxy import proxy_server
else:
    # Loaded when the first client connects.
    asyncio = Later("asyncio")
    proxy_server = Later("playhead.launch.proxy.proxy_server")


class ProxyService(Service):
    """Serves the ports that the command's environment leads to."""

    def __init__(self, world: SharedDeck, ports: ProxyPorts) -> None:
        super().__init__(world, tuple(ports.listeners.values()))
        self._listeners = ports.listeners
        self._env: Mapping[str, str] = ports.env

    def serve(self, stop: int) -> None:
        self.world.enter()
        asyncio.run(self._serve(stop))

    async def _serve(self, stop: int) -> None:
        over = asyncio.Event()
        asyncio.get_running_loop().add_reader(stop, over.set)
        proxy = proxy_server.Proxy(self._listeners, self._env, paced=self.world.is_paced)
        await proxy.serve_until(over)

"""One client of the proxy: its requests one after the other, each across the deck.

Knows connections and the order of things; who answers is the deck's business, and how is in `live`,
`taped` and `socket`.
"""

from __future__ import annotations

import asyncio
import dataclasses
import ssl
from collections.abc import Callable, Mapping

from playhead.errors import Divergence
from playhead.hooks.http import exchange
from playhead.hooks.http.exchange import Exchange
from playhead.hooks.http.http1 import NotHttp
from playhead.launch.proxy import (
    live,
    refusal,
)
from playhead.launch.proxy import proxied_request as asking
from playhead.launch.proxy import (
    proxied_websocket as sockets,
)
from playhead.launch.proxy import (
    side_traffic as side,
)
from playhead.launch.proxy import (
    taped_response as taped,
)
from playhead.launch.proxy.authority import Authority
from playhead.launch.proxy.proxied_request import Asked
from playhead.launch.proxy.routes import Origin, addresses, arrived, guessed
from playhead.launch.proxy.unheard import Unheard
from playhead.recording import deck, lanes, where


class Listening(asyncio.StreamReaderProtocol):
    """Says when the client has left: nobody reads from it while its answer is on the way."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        super().__init__(reader)
        self.left: Callable[[], object] | None = None
        self._whole = False

    def over_tls(self) -> None:
        """Such a connection cannot be closed by half."""
        self._whole = True

    def eof_received(self) -> bool | None:
        self._say()
        stays = super().eof_received()
        return False if self._whole else stays

    def connection_lost(self, exc: Exception | None) -> None:
        self._say()
        super().connection_lost(exc)

    def _say(self) -> None:
        if self.left is not None:
            left, self.left = self.left, None
            left()


class Client:
    """A connection to the proxy at the port that stands for `usual`; None: for all that agents know."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        usual: Origin | None,
        env: Mapping[str, str],
        *,
        paced: bool = False,
        authority: Authority | None = None,
    ) -> None:
        self.reader = reader
        self.writer = writer
        self.env = env
        self.paced = paced
        self.server = live.Server(self)
        self._usual = usual
        self._authority = authority
        # Writers whose streams became others: the last reference would close the connection.
        self._before: list[asyncio.StreamWriter] = []
        protocol = writer.transport.get_protocol()
        self._protocol = protocol if isinstance(protocol, Listening) else None

    @property
    def has_left(self) -> bool:
        return self.reader.at_eof() or self.writer.transport.is_closing()

    def when_left(self, left: Callable[[], object] | None) -> None:
        if self._protocol is not None:
            self._protocol.left = left

    async def serve(self) -> None:
        try:
            while (asked := await asking.read(self.reader, self.writer)) is not None:
                if asked.method == "CONNECT":
                    goes_on = await self._become(asked)
                else:
                    goes_on = await self._answer(asked)
                if not goes_on:
                    break
        except NotHttp as error:
            self.writer.write(refusal.bad_request(str(error)))
        except (ConnectionError, ssl.SSLError):
            return  # the client has left, or trusts us not; what was on its way has been told
        finally:
            self.server.close()
            self.writer.close()

    async def _become(self, asked: Asked) -> bool:
        """From here on we are the server that the client wants to reach behind TLS."""
        host, _, port = asked.target.rpartition(":")
        if self._authority is None or not port.isdigit():
            self.writer.write(refusal.bad_request("this proxy makes no tunnels (see --connect)"))
            return False
        loop = asyncio.get_running_loop()
        name = host.strip("[]").lower()
        context = await loop.run_in_executor(None, self._authority.context_for, name)
        self.writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await self.writer.drain()
        if self._protocol is None:
            return False
        self._protocol.over_tls()
        transport = self.writer.transport
        made = await loop.start_tls(transport, self._protocol, context, server_side=True)
        if made is None:
            return False
        self._before.append(self.writer)
        self.writer = asyncio.StreamWriter(made, self._protocol, self.reader, loop)
        self._usual = Origin("https", host.lower(), int(port))
        return True

    async def _answer(self, asked: Asked) -> bool:
        """Answer one request; whether the connection goes on."""
        usual = self._usual or guessed(asked.target, dict(asked.headers), addresses(self.env))
        if usual is None:
            raise NotHttp("nobody can tell whom this request is for")
        origin, target, parent = arrived(asked.target, usual)
        url = f"{origin}{target}"
        lanes.enclosing.set(parent)
        # Which connection a client takes is a race: conversations are told apart by what is said.
        lanes.current.set(lanes.MAIN)
        plain = asked.plain()
        try:
            crossing = _announced(plain, url)
        except Divergence as error:
            self.writer.write(refusal.diverged(url, str(error)))
            await self.writer.drain()
            return False
        # What the agent made goes on as it is; what is sent instead is not compressed.
        asked = dataclasses.replace(asked if crossing.instead is None else plain, target=target)
        if crossing.taped is None:
            if not asked.is_upgrade:
                return await self.server.answer(crossing, asked, origin)
            await sockets.live(self, crossing, asked, origin)
            return False
        if not (asked.is_upgrade and sockets.is_talk(crossing.taped)):
            return await taped.answer(self, crossing, asked)
        await sockets.taped(self, crossing, asked)
        return False


def _announced(asked: Asked, url: str) -> Exchange:
    """The request goes onto the tape before it is made."""
    crossing = exchange.begin(
        library="proxy",
        method=asked.method,
        url=url,
        headers=asked.headers,
        body=asked.body,
        rewrites=True,
        at=where.json_text(_agent(asked)),
        facts=side.facts(asked.method, url, asked.body),
    )
    if crossing is not None:
        return crossing
    open_deck = deck.active()
    if open_deck is None:
        raise Divergence(
            "Nothing is recorded any more, and nothing is replayed: the run has ended."
        )
    return Unheard(open_deck)


def _agent(asked: Asked) -> str:
    """Who asks, by its own word: `claude-cli/2.1.325`."""
    return (asked.value("user-agent") or "").partition(" ")[0][:80]

"""One client of the proxy: its requests one after the other, each performed through the deck.

Knows connections and their order. The deck decides who answers; `live`, `taped_response` and `proxied_websocket`
write the answers.

Recording fails open: an exchange that cannot be put on the tape is forwarded all the same.
"""

from __future__ import annotations

import asyncio
import dataclasses
import re
import ssl
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from playhead.errors import Divergence
from playhead.hooks.http.exchange import Exchange, HttpAdapter, Pair, Request, call_of
from playhead.hooks.http.http1 import NotHttp
from playhead.launch.proxy import live
from playhead.launch.proxy import proxied_request as asking
from playhead.launch.proxy import (
    proxied_websocket as sockets,
)
from playhead.launch.proxy import (
    taped_response as taped,
)
from playhead.launch.proxy.authority import Authority
from playhead.launch.proxy.proxied_request import ProxiedRequest, side_facts
from playhead.launch.proxy.routes import Origin, addresses, arrived, guessed
from playhead.launch.proxy.taped_response import bad_request, diverged
from playhead.recording import deck, lanes, where
from playhead.recording.crossing import Crossing
from playhead.recording.deck import Deck

_HOST = re.compile(r"[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]")


class Listening(asyncio.StreamReaderProtocol):
    """Reports that the client has disconnected. Nothing reads from the client while its answer is being sent."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        super().__init__(reader)
        self.left: Callable[[], object] | None = None
        self._whole = False

    def over_tls(self) -> None:
        """Note that the connection uses TLS: it cannot be half closed."""
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
    """A connection to the proxy, at the port of the origin `usual`; None: the port serves all known origins."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        usual: Origin | None,
        env: Mapping[str, str],
        *,
        paced: bool = False,
        authority: Authority | None = None,
        token: str = "",
    ) -> None:
        self.reader = reader
        self.writer = writer
        self.env = env
        self.paced = paced
        self.server = live.LiveServer(self)
        self._usual = usual
        self._authority = authority
        self._token = token
        # Writers whose streams were replaced. They are kept, because the end of the last reference closes the
        # connection.
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
                self._refuse_strangers(asked)
                if asked.method == "CONNECT":
                    goes_on = await self._become(asked)
                else:
                    goes_on = await self._answer(asked)
                if not goes_on:
                    break
        except NotHttp as error:
            self.writer.write(bad_request(str(error)))
        except (ConnectionError, ssl.SSLError):
            # the client disconnected or does not trust our certificate; its calls are on the tape
            # already
            return
        finally:
            self.server.close()
            self.writer.close()

    def _refuse_strangers(self, asked: ProxiedRequest) -> None:
        """Refuse requests of web pages. A page can send requests to ports of this machine, and its own host name can
        lead to 127.0.0.1.

        NotHttp: the request comes from a page. Node's `fetch` sends `sec-fetch-mode` as well, so that header proves
        nothing; only browsers send `origin` and `sec-fetch-site`.
        """
        if asked.value("origin") is not None or asked.value("sec-fetch-site") is not None:
            raise NotHttp("this proxy does not serve web pages")
        here = self.writer.get_extra_info("sockname")
        if self._before or asked.method == "CONNECT" or not _is_loopback(here[0] if here else ""):
            return
        host = asked.value("host")
        name = "127.0.0.1" if host is None else host.rpartition(":")[0] or host
        if not _is_loopback(name.strip("[]").lower()):
            raise NotHttp(f"the Host header names {name[:80]!r}; expected this machine")

    async def _become(self, asked: ProxiedRequest) -> bool:
        """Act as the server that the client wants to reach over TLS."""
        host, _, port = asked.target.rpartition(":")
        if self._authority is None or not port.isdigit() or not _HOST.fullmatch(host):
            self.writer.write(bad_request("this proxy makes no tunnels (see --connect)"))
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

    async def _answer(self, asked: ProxiedRequest) -> bool:
        """Answer one request; return whether the connection stays open."""
        usual = self._usual or guessed(asked.target, dict(asked.headers), addresses(self.env))
        if usual is None:
            raise NotHttp("the destination of this request cannot be determined")
        found = arrived(asked.target, usual, self._token)
        if found is None:
            raise NotHttp(
                "only processes of the run may name a server: the token is missing or wrong"
            )
        origin, target, parent = found
        url = f"{origin}{target}"
        lanes.enclosing.set(parent)
        # The connection that a client uses is chosen by a race. So all requests share one lane, and are told apart by
        # their content.
        lanes.current.set(lanes.MAIN)
        open_deck = deck.declared()
        if open_deck is None:
            why = "The run has ended: this proxy no longer records or replays requests."
            return await self._refuse(url, why)
        plain = asked
        if asked.value("content-encoding") is not None:
            # Not on the event loop: a small body may expand to a hundred megabytes, and other clients would wait.
            loop = asyncio.get_running_loop()
            plain = await loop.run_in_executor(None, asked.plain)
        adapter = _Passing(self, asked, plain, origin, target)
        call = call_of(open_deck, adapter.request)
        if call is None:
            return await self.server.answer(UnrecordedExchange(open_deck), adapter.sent, origin)
        try:
            return bool(await open_deck.perform_async(call, adapter))
        except Divergence as error:
            if adapter.has_begun:
                raise
            return await self._refuse(url, str(error))

    async def _refuse(self, url: str, why: str) -> bool:
        self.writer.write(diverged(url, why))
        await self.writer.drain()
        return False


class _Passing(HttpAdapter):
    """One request that passes through the proxy. Its methods return whether the connection can be used again."""

    def __init__(
        self,
        client: Client,
        asked: ProxiedRequest,
        plain: ProxiedRequest,
        origin: Origin,
        target: str,
    ) -> None:
        """`plain` is the request with its body decompressed: two equal bodies may be compressed to different bytes."""
        url = f"{origin}{target}"
        super().__init__(
            Request(
                "proxy",
                plain.method,
                url,
                plain.headers,
                plain.body,
                where.json_text(_agent(plain)),
                side_facts(plain.method, url, plain.body),
            )
        )
        self._client = client
        self._origin = origin
        # The agent's own bytes are passed on as they are; a changed body is sent uncompressed.
        self.sent = dataclasses.replace(asked, target=target)
        self._plain = dataclasses.replace(plain, target=target)
        self.has_begun = False

    async def live(self, crossing: Crossing) -> bool:
        exchange = self.begin(crossing)
        self.has_begun = True
        asked = self.sent if crossing.instead is None else self._plain
        if not asked.is_upgrade:
            return await self._client.server.answer(exchange, asked, self._origin)
        await sockets.live(self._client, exchange, asked, self._origin)
        return False

    def observe(self, crossing: Crossing, result: bool) -> bool:
        return result  # `live` has reported the pieces of the answer as they passed

    async def serve(self, crossing: Crossing) -> bool:
        exchange = self.begin(crossing)
        self.has_begun = True
        if crossing.taped is None or not (self.sent.is_upgrade and sockets.is_talk(crossing.taped)):
            return await taped.answer(self._client, exchange, self.sent)
        await sockets.taped(self._client, exchange, self.sent)
        return False


def _is_loopback(name: str) -> bool:
    return name in ("localhost", "::1") or name.startswith("127.")


def _agent(asked: ProxiedRequest) -> str:
    """Return the agent's name as its User-Agent gives it: `claude-cli/2.1.325`."""
    return (asked.value("user-agent") or "").partition(" ")[0][:80]


class UnrecordedExchange(Exchange):
    """An exchange that is forwarded but not recorded."""

    __slots__ = ()

    def __init__(self, open_deck: Deck) -> None:  # there is no crossing on the tape
        self._deck = open_deck
        self.taped = None
        self.instead = None
        self.status = None
        self.ended = True
        self._last = b""

    @property
    def name(self) -> str:
        return "unheard"

    @property
    def is_llm(self) -> bool:
        return False

    def head(self, status: int, reason: str, version: str, headers: Iterable[Pair]) -> None:
        """Ignored."""

    def chunk(self, piece: bytes, stream: str = "body") -> None:
        """Ignored."""

    def heard(self, answer: bytes) -> None:
        """Ignored."""

    def _end(self, how: str, facts: dict[str, Any]) -> None:
        """Ignored."""

"""Route the connections of psycopg 3 through a relay: sync and async, with its C and its Python implementation.

Operations of psycopg are generators that yield when they have to wait for the descriptor. A served connection does not
wait: the generator is continued as soon as the relay has answered. Knows `psycopg.generators.connect`, which gets the
connection string, and the functions of `psycopg.waiting`, in which all of psycopg waits.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from playhead.hooks.guest import Patches, holders, need
from playhead.hooks.sql import upstream
from playhead.hooks.sql.relay import Relay
from playhead.recording import deck

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import ModuleType
    from typing import Any

    from playhead.hooks.sql.upstream import PostgresTarget

_MOST_ROUNDS = 3
# psycopg's numbers for the events that an operation waits for, and for those that are ready.
_WRITE, _BOTH = 2, 3
# The relays, by the descriptor that libpq waits for.
_relays: dict[int, Relay] = {}

_OF_THE_RELAY = re.compile(
    r'connection to server on socket "@playhead-pg-[^"]*" failed: (FATAL:  connection to server )?'
)


def hook(module: ModuleType, patches: Patches) -> None:
    """`module` is psycopg."""
    generators, waiting = sys.modules["psycopg.generators"], sys.modules["psycopg.waiting"]
    need(sys.modules["psycopg.conninfo"], "conninfo_to_dict", "make_conninfo")
    need(generators, "connect")
    original = generators.connect
    for holder in holders("connect", original):
        patches.replace(holder, "connect", _connect)
    for name, wrap in (
        ("wait", _wait),
        ("wait_conn", _wait_conn),
        ("wait_async", _wait_async),
        ("wait_conn_async", _wait_conn_async),
    ):
        patches.replace(waiting, name, wrap)
    info = module.ConnectionInfo
    need(info, "host")
    patches.replace(info, "host", _host_of)
    patches.on_undo(_relays.clear)


def relayed(
    given: dict[str, Any], library: str, *, inline: bool
) -> tuple[Relay, dict[str, Any]] | None:
    """Return a relay for these parameters, and the parameters that connect to the relay; None if nothing records, or
    if no relay can reach this server.
    """
    open_deck = deck.active()
    if open_deck is None or open_deck.is_inside("sql"):
        return None
    target = upstream.target_of(given)
    if isinstance(target, str):
        where = given.get("host") or given.get("service") or "a server"
        open_deck.unfollowed("sql", f"the connection of {library} to {where}", target)
        return None
    relay = Relay(open_deck, target, library, inline=inline)
    return relay, _redirected(given, target, relay)


def _redirected(given: dict[str, Any], target: PostgresTarget, relay: Relay) -> dict[str, Any]:
    """Return the parameters with the relay as the server. Sets an empty address, because libpq would take a missing
    one from the environment.
    """
    changed = {k: v for k, v in given.items() if not k.startswith("ssl") and k != "requirepeer"}
    changed.update(host=relay.host, hostaddr="", port=str(target.servers[0].port))
    changed.update(sslmode="disable", gssencmode="disable")
    if "password" not in target.settings and (password := upstream.password_of(target)) is not None:
        changed["password"] = password
    return changed


def plain_words(message: str, relay: Relay) -> str:
    """Return an error message of libpq with the address of the real server, which the program knows."""
    server = relay.target.servers[0]
    where = (
        f'on socket "{server.shown()}"'
        if server.is_local
        else f'at "{server.host}", port {server.port}'
    )

    def put(found: re.Match[str]) -> str:
        return "connection to server " if found[1] else f"connection to server {where} failed: "

    return _OF_THE_RELAY.sub(put, message)


def explain(error: Any, relay: Relay) -> None:
    """Put the address of the real server into the error of a client that could not connect, and report the error."""
    error.args = tuple(
        plain_words(one, relay) if isinstance(one, str) else one for one in error.args
    )
    words = str(error)
    relay.give_up(words[max(words.find("connection to server"), 0) :])


def _connect(original: Callable[..., Any]) -> Callable[..., Any]:
    def connect(conninfo: str, **options: Any) -> Generator[Any, Any, Any]:
        info = sys.modules["psycopg.conninfo"]
        made = relayed(dict(info.conninfo_to_dict(conninfo)), "psycopg", inline=True)
        if made is None:
            return (yield from original(conninfo, **options))
        relay, changed = made
        steps = original(info.make_conninfo("", **changed), **options)
        error_kind = sys.modules["psycopg"].Error
        try:
            ready = None
            while True:
                asked = steps.send(ready)
                _relays[asked[0]] = relay
                ready = yield asked
        except StopIteration as stop:
            return stop.value
        except error_kind as error:
            explain(error, relay)
            raise

    return connect


def _host_of(original: Any) -> Any:
    def host(self: Any) -> str:
        relay = _relays.get(self.pgconn.socket) if self.pgconn.status == 0 else None
        found: str = original.__get__(self) if relay is None else relay.target.servers[0].host
        return found

    return property(host)


def _wait(original: Callable[..., Any]) -> Callable[..., Any]:
    def wait(gen: Any, fileno: int, *args: Any, **options: Any) -> Any:
        relay = _relays.get(fileno)
        if relay is None:
            return original(gen, fileno, *args, **options)
        relay.enter()
        if not relay.is_served:
            return _waited(relay, lambda: original(_steady(gen), fileno, *args, **options))
        pieces = _Driven(gen, [relay])
        if not pieces.run():
            while not pieces.is_over and relay.notified():
                relay.settle()
                pieces.run()
            if not pieces.is_over:
                if (left := relay.left) is not None:
                    left.reach(-2)
                return original(pieces.rest(), fileno, *args, **options)
        return _finished(pieces, relay)

    return wait


def _finished(pieces: _Driven, relay: Relay) -> Any:
    relay.settle()
    return pieces.result()


def _waited(relay: Relay, wait: Callable[[], Any]) -> Any:
    try:
        return wait()
    except KeyboardInterrupt:
        relay.leave()
        raise
    finally:
        relay.settle()


def _wait_conn(original: Callable[..., Any]) -> Callable[..., Any]:
    def wait_conn(gen: Any, *args: Any, **options: Any) -> Any:
        pieces = _Driven(gen, [])
        asked = pieces.first()
        if asked is None:
            return pieces.result()
        relay = _relays.get(asked[0])
        if relay is None and any(one.is_served for one in _relays.values()):
            pieces.relays = [one for one in _relays.values() if one.is_served]
            pieces.run()
            return pieces.result() if pieces.is_over else original(pieces.rest(), *args, **options)
        if relay is None:
            return original(pieces.rest(), *args, **options)
        if not relay.is_served:
            return _waited(relay, lambda: original(pieces.rest(), *args, **options))
        pieces.relays = [relay]
        pieces.run()
        return _finished(pieces, relay)

    return wait_conn


def _wait_async(original: Callable[..., Any]) -> Callable[..., Any]:
    async def wait_async(gen: Any, fileno: int, *args: Any, **options: Any) -> Any:
        relay = _relays.get(fileno)
        if relay is None:
            return await original(gen, fileno, *args, **options)
        relay.enter()
        if not relay.is_served:
            return await _waited_async(
                relay, lambda: original(_steady(gen), fileno, *args, **options)
            )
        pieces = _Driven(gen, [relay])
        if not pieces.run():
            if (left := relay.left) is not None:
                try:
                    await left.reach_end_async()
                finally:
                    relay.leave()
                    if not _can_cancel_without_waiting():
                        relay.await_cancel()
            while not pieces.is_over and relay.notified():
                await relay.settle_async()
                pieces.run()
            if not pieces.is_over:
                return await original(pieces.rest(), fileno, *args, **options)
        await relay.settle_async()
        return pieces.result()

    return wait_async


def _can_cancel_without_waiting() -> bool:
    capabilities = getattr(sys.modules["psycopg"], "capabilities", None)
    return capabilities is not None and bool(capabilities.has_cancel_safe())


async def _waited_async(relay: Relay, wait: Callable[[], Any]) -> Any:
    try:
        with relay.carrying():
            return await wait()
    except BaseException as error:
        if type(error).__name__ in ("CancelledError", "KeyboardInterrupt"):
            relay.leave()
        raise
    finally:
        await relay.settle_async()


def _wait_conn_async(original: Callable[..., Any]) -> Callable[..., Any]:
    async def wait_conn_async(gen: Any, *args: Any, **options: Any) -> Any:
        pieces = _Driven(gen, [])
        asked = pieces.first()
        if asked is None:
            return pieces.result()
        relay = _relays.get(asked[0])
        if relay is None and any(one.is_served for one in _relays.values()):
            pieces.relays = [one for one in _relays.values() if one.is_served]
            pieces.run()
            return (
                pieces.result()
                if pieces.is_over
                else await original(pieces.rest(), *args, **options)
            )
        if relay is None:
            return await original(pieces.rest(), *args, **options)
        if not relay.is_served:
            return await _waited_async(relay, lambda: original(pieces.rest(), *args, **options))
        pieces.relays = [relay]
        pieces.run()
        await relay.settle_async()
        return pieces.result()

    return wait_conn_async


def _steady(gen: Any) -> Generator[Any, Any, Any]:
    """Drive an operation so that it writes whenever it waits to write or to read. In a pipeline psycopg would read the
    answers that happen to arrive while it sends, and they decide whether it prepares statements: a replay could not
    repeat that.
    """
    ready = None
    try:
        while True:
            asked = gen.send(ready)
            ready = yield _WRITE if asked == _BOTH else asked
    except StopIteration as stop:
        return stop.value


class _Driven:
    """An operation of psycopg that is continued each time a relay has data for it."""

    def __init__(self, gen: Any, relays: list[Relay]) -> None:
        self._gen = gen
        self.relays = relays
        self._asked: Any = None
        self._value: Any = None
        self._error: BaseException | None = None
        self.is_over = False

    def first(self) -> Any:
        """Start the operation, and return the first descriptor and event that it waits for; None if it is over."""
        self._step(None)
        return None if self.is_over else self._asked

    def run(self) -> bool:
        """Continue until the operation is over, or no relay has more data for it. Return whether it is over."""
        if self._asked is None and not self.is_over:
            self._step(None)
        idle = 0
        while not self.is_over and idle < _MOST_ROUNDS:
            moved = sum(one.pump() for one in self.relays) > 0
            idle = 0 if moved else idle + 1
            # Report the awaited event as ready: psycopg uses the same numbers for both.
            asked = self._asked[1] if isinstance(self._asked, tuple) else self._asked
            self._step(_WRITE if asked == _BOTH else asked)
        for one in self.relays:
            one.pump()  # a pipeline does not wait for its answers
        return self.is_over

    def rest(self) -> Generator[Any, Any, Any]:
        """Yield the rest of the operation to a function that waits for real."""
        while not self.is_over:
            ready = yield self._asked
            self._step(ready)
        return self.result()

    def result(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._value

    def _step(self, ready: Any) -> None:
        try:
            self._asked = self._gen.send(ready)
        except StopIteration as stop:
            self.is_over, self._value = True, stop.value
        except Exception as error:  # noqa: BLE001  the client's own, raised when its place has come
            self.is_over, self._error = True, error

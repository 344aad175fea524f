"""Services of the sidecar: sockets, and a thread that starts with the first client. The proxy is one of them.

If the command never connects, no thread is started and nothing is loaded: the sidecar only polls the listening
sockets.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from playhead.encoding.values import safe_str
from playhead.host.later import Later
from playhead.launch.proxy.ports import ProxyPorts
from playhead.recording import deck
from playhead.recording.deck import Deck
from playhead.recording.recorder import Recorder
from playhead.tape.store import PLAN

if TYPE_CHECKING:
    import asyncio

    from playhead.launch.proxy import proxy_server
    from playhead.replay import answer_order, begin
    from playhead.replay import replay_plan as plan
    from playhead.replay.modes import replay_options
    from playhead.replay.report import printed_output
else:
    answer_order = Later("playhead.replay.answer_order")  # a recording never loads it
    begin = Later("playhead.replay.begin")
    plan = Later("playhead.replay.replay_plan")
    replay_options = Later("playhead.replay.modes.replay_options")
    printed_output = Later("playhead.replay.report.printed_output")
    asyncio = Later("asyncio")
    proxy_server = Later("playhead.launch.proxy.proxy_server")


class SharedDeck:
    """The deck that all services share, made for the first of them. There is one deck and one replay mode, because a
    shim's call has a model's response as its cause, and each taped call is served once, whichever service asks.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        # The command's pid: a replay kills it where the recorded run was killed.
        self.command: int | None = None
        self.is_replay = (recorder.run / PLAN).exists()
        # In a replay: lanes and arguments of the recorded processes, in the order in which they started.
        self.taped: list[tuple[str, list[str]]] = []
        # In a replay: whether a program of the run used the proxy. Such a program has its own clock.
        self.has_own_clock = False
        # Whether a replay waits between chunks as long as the recorded server did.
        self.is_paced = False
        self._deck: Deck | None = None
        self._making = threading.Lock()  # two services may start at once

    def enter(self) -> Deck:
        """The deck of this process. PlayheadError: the tape cannot be replayed."""
        with self._making:
            if self._deck is None:
                self._deck = self._made()
                deck.activate(self._deck)
            return self._deck

    def _made(self) -> Deck:
        if not self.is_replay:
            return Deck(self.recorder)
        mode, _ = begin.begin_replay(self.recorder.run, self.recorder)
        mode.mortal = self.command
        starts = sorted(mode.recording.segments.values(), key=lambda one: one.mono)
        self.taped = [(one.lane, one.data.get("argv") or []) for one in starts]
        self.has_own_clock = printed_output.by_proxy(mode.recording)
        # Here a call past the end of the tape is a divergence. Only a process of the command itself, which knows that
        # it is the one that was killed, kills the command.
        mode.recording.closed.update(mode.recording.segments)
        written = plan.read_plan(self.recorder.run)
        self.is_paced = written is not None and written.pace
        if written is not None and begin.keeps_order(
            written, replay_options.read_options(written.live, written.options)
        ):
            answer_order.follow(mode.recording, self.command, self.recorder.folder)
        return Deck(self.recorder, mode)


class Service:
    """Serves clients of `sockets`. Subclasses implement `serve`."""

    # Start shortly after the command, before the first client: loading takes longer than a client should wait.
    starts_early = False

    def __init__(self, world: SharedDeck, sockets: Sequence[socket.socket]) -> None:
        self.world = world
        self.sockets = tuple(sockets)
        self.is_started = False
        self.is_over = False
        self._is_alone = False
        self._stop = (-1, -1)

    @property
    def fds(self) -> list[int]:
        return [one.fileno() for one in self.sockets]

    def start(self, done: Callable[[], object]) -> None:
        """Serve in a thread; `done` is called in it at its end."""
        self.is_started = True
        self._stop = os.pipe()
        # A daemon thread: if it hangs, it must not keep the sidecar from ending.
        threading.Thread(target=self._run, args=(done,), daemon=True).start()

    def stop(self, *, alone: bool) -> None:
        """End when everything that clients have sent is on the tape. `alone`: the launcher was killed, so its files
        are removed here.
        """
        self._is_alone = alone
        if self.is_started:
            with suppress(OSError):
                os.write(self._stop[1], b"s")
        elif not self.is_over:
            self._end()

    def serve(self, stop: int) -> None:
        """Serve until `stop` is readable."""
        raise NotImplementedError

    def inherit(self) -> None:
        """Take the place of the same service in a process that was killed."""

    def clear_up(self) -> None:
        """Remove the files that the launcher would remove."""

    def _run(self, done: Callable[[], object]) -> None:
        try:
            self.serve(self._stop[0])
        except Exception as error:  # noqa: BLE001  one service must not end the others
            self.world.recorder.warn(f"{type(self).__name__} has failed ({safe_str(error)}).")
        finally:
            self._end()
            done()

    def _end(self) -> None:
        # Clients that come later are refused instead of waiting forever.
        for one in self.sockets:
            one.close()
        if self._is_alone:
            self.clear_up()
        self.is_over = True


class ProxyService(Service):
    """Serves the ports that the command's environment leads to."""

    def __init__(self, world: SharedDeck, ports: ProxyPorts) -> None:
        super().__init__(world, tuple(ports.listeners.values()))
        self._listeners = ports.listeners
        self._env: Mapping[str, str] = ports.env
        self._token = ports.token
        self._spares = ports.spares

    def inherit(self) -> None:
        """Refuse clients of the ports whose origins only the killed process knew: with another origin, a client would
        send its key to the wrong server.
        """
        self._spares.withdraw()

    def serve(self, stop: int) -> None:
        self.world.enter()
        asyncio.run(self._serve(stop))

    async def _serve(self, stop: int) -> None:
        over = asyncio.Event()
        asyncio.get_running_loop().add_reader(stop, over.set)
        proxy = proxy_server.Proxy(
            self._listeners,
            self._env,
            paced=self.world.is_paced,
            token=self._token,
            spares=self._spares,
        )
        await proxy.serve_until(over)

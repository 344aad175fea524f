"""Serve one shim from its call to its end: record its program, or play it from the tape. Knows the deck and the
player of taped processes; does not know how shims connect.
"""

from __future__ import annotations

import contextvars
import os
import socket
import threading
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from playhead import clock
from playhead.errors import Divergence
from playhead.hooks.process.exits import facts_of, signal_name
from playhead.hooks.process.flight import Flight
from playhead.host.descriptors import frame, take_frames
from playhead.host.later import Later
from playhead.launch.guest.variables import PARENT
from playhead.launch.shims.named_files import NamedFiles, files_to_write
from playhead.launch.shims.shim_frames import (
    REFUSED,
    STREAMS,
    ShimCall,
    agent_frame,
    read_call,
    refusal,
    run_frame,
    write_frame,
)
from playhead.launch.shims.shim_request import Surroundings, call_from
from playhead.launch.shims.stream_files import end_of, rest_of, written
from playhead.recording import lanes
from playhead.recording.adapter import Adapter
from playhead.recording.calls import SIDE, Call
from playhead.recording.deck import Crossing, Deck
from playhead.recording.lanes import Lane
from playhead.workspace.watch.call_marks import marks_of

if TYPE_CHECKING:
    from playhead.hooks.process import (
        player as process_player,
    )
    from playhead.hooks.process import (
        script as process_script,
    )
    from playhead.hooks.process import (
        stand_in as process_stand_in,
    )
    from playhead.launch.follow.followed_tree import FollowedTree
    from playhead.recording.calls import Taped
    from playhead.replay import answer_order
else:
    # Only a replay needs these: see `playhead.host.later`.
    process_player = Later("playhead.hooks.process.player")
    process_script = Later("playhead.hooks.process.script")
    process_stand_in = Later("playhead.hooks.process.stand_in")
    answer_order = Later("playhead.replay.answer_order")

_AT_ONCE = 1 << 18
_STREAM_OF = ("stdin", "stdout", "stderr")
_OUTPUT = frozenset({"stdout", "stderr"})


class Caller:
    """One shim. `line` is the connection; `lane_for` names the lane of the processes that the program starts."""

    def __init__(
        self,
        line: socket.socket,
        deck: Deck,
        then: Surroundings,
        lanes: ChildLanes,
        tree: FollowedTree | None = None,
    ) -> None:
        self.line = line
        self._deck = deck
        self._then = then
        self._marks = marks_of(deck.recorder.folder)
        self._lanes = lanes
        self._tree = tree
        self._buffer = bytearray()
        self._fds: list[int] = []
        self._asked: ShimCall | None = None
        self._crossing: Crossing | None = None
        self._started = 0
        self._files: dict[str, tuple[int, int]] = {}
        self._named: NamedFiles | None = None
        self._player: process_player.Player | None = None
        # The taped call that is played, if it has a place among the agent's other calls.
        self._ref: object = None
        self._playing = threading.Lock()
        self._has_left = False
        # Whether the programs that write to this one have their own clocks: see `Script`.
        self.has_own_clock = False
        # Signals that arrived before the process was played.
        self._early: list[int] = []

    def hear(self) -> bool:
        """Read the messages of the shim. False: it has disconnected."""
        try:
            data, fds, _, _ = socket.recv_fds(self.line, _AT_ONCE, 3)
        except OSError:
            data, fds = b"", []
        self._fds += fds
        if not data:
            return False
        self._buffer += data
        for what, payload in take_frames(self._buffer):
            self._take(what, payload)
        return True

    def _take(self, what: bytes, payload: bytes) -> None:
        crossing = self._crossing
        if what == b"C":
            self._call(read_call(payload))
        elif crossing is None:
            if what == b"S":
                self._early.append(int(payload))
        elif (stream := STREAMS.get(what)) is not None:
            crossing.chunk(payload, stream)
        elif what == b"M":
            mark, _, of = payload.decode().partition(" ")
            crossing.chunk(of.encode(), mark)
        elif what == b"S":
            self._signalled(int(payload))
        elif what == b"X":
            self._exited(int(payload))

    def _call(self, asked: ShimCall) -> None:
        if self._tree is not None and self._tree.is_agent(asked):
            self._say(agent_frame(*self._tree.start(asked)))
            return
        self._asked = asked
        here = asked.run == str(self._deck.recorder.run)
        lane = asked.lane if here and asked.lane else "main"
        lanes.current.set(Lane(lane))
        lanes.enclosing.set(asked.parent if here and asked.parent else None)
        self._started = clock.mono_ns()
        files = dict(zip(asked.passed, self._fds, strict=False))
        known = rest_of(files[0]) if asked.kinds[0] == "file" and 0 in files else None
        # If another taped program started this one, the file changes belong to that other program.
        is_outermost = not asked.parent or asked.parent == self._then.env.get(PARENT)
        self._deck.marks = self._marks if is_outermost else None
        call = call_from(asked, self._then, known)
        if self._tree is not None and self._tree.is_by_agent(asked) and not self._is_wanted(call):
            call = replace(call, facts={**call.facts, SIDE: "housekeeping"})
        try:
            self._deck.perform(call, _Shim(self, asked, lane, files, known is not None))
        except Divergence as divergence:
            if self._crossing is not None:
                raise
            self._say(refusal(str(divergence)))

    def _is_wanted(self, call: Call) -> bool:
        """Return whether a model asked for this program. Agents also run programs for themselves, some on timers, to
        look at the repository and the terminal. How often they do so differs from run to run, and the results
        reach a model only in requests, which are compared.
        """
        return self._deck.cause_of(call) is not None

    def start(self, crossing: Crossing, asked: ShimCall, lane: str, files: dict[int, int]) -> None:
        """Let the shim run its program; the shim then reports what the program does."""
        self._crossing = crossing
        self._watch_files(asked, files)
        if self._deck.marks is not None:
            self._named = NamedFiles(asked.argv, self._deck.marks.covers)
        segment = self._deck.recorder.segment
        ref = "" if crossing.seq is None else f"{segment}:{crossing.seq}"
        changes = {} if self._tree is None else self._tree.lead(asked, ref)
        self._say(run_frame(ref, self._lanes.below(lane, asked.name), changes))

    def _watch_files(self, asked: ShimCall, files: dict[int, int]) -> None:
        """Keep files that the program writes into, to read them when it has ended; close all other descriptors."""
        self._fds = []
        for fd, own in files.items():
            if fd and asked.kinds[fd] == "file":
                self._files[_STREAM_OF[fd]] = (own, end_of(own))
                self._fds.append(own)
            else:
                os.close(own)

    def _signalled(self, number: int) -> None:
        if self._player is not None and not self._player.signalled(number):
            self._say(frame(b"D", str(number).encode()))
        elif self._player is None and self._crossing is not None:
            self._crossing.chunk(signal_name(number).encode(), "signal")

    def _exited(self, code: int) -> None:
        crossing, asked = self._crossing, self._asked
        if crossing is None or asked is None:
            return
        exited_ns = clock.mono_ns() - self._started
        self._read_files(crossing)
        named = {} if self._named is None else self._named.facts()
        crossing.returned(code, pid=asked.pid, exited_ns=exited_ns, **facts_of(code), **named)
        self._say(frame(b"K"))

    def _read_files(self, crossing: Crossing) -> None:
        """Return the bytes that the program has written into files so far."""
        while self._files:
            stream, (fd, start) = self._files.popitem()
            for piece in written(fd, start):
                crossing.chunk(piece, stream)

    def play_in_order(
        self, crossing: Crossing, taped: Taped, files: dict[int, int], sent: bool
    ) -> None:
        """Play a taped process when the agent may see its first output, or its end: see `AnswerOrder`."""
        order = answer_order.current
        self._ref = None if taped.match.get("rung") == SIDE else taped.match.get("of")
        if order is None or self._ref is None:
            self.play(crossing, taped, files, sent)
            return
        order.begin(self._ref)
        first = next((one.at_ns for one in taped.pieces if one.stream in _OUTPUT), taped.took_ns)
        if order.is_due(self._ref, first):
            self.play(crossing, taped, files, sent)
            return
        # A process reads its input also while its output must wait: `seq 99999 | wc` waits for the end of `seq`, which
        # waits until its output has been read.
        reads = 0 in files and not sent
        if reads:
            self.play(crossing, taped, files, sent, is_held=True)

        # In a thread, because other shims must be served meanwhile: the process may wait for one of them.
        def play_later() -> None:
            order.wait(taped.match.get("of"), first)
            with self._playing:
                if self._has_left:
                    return
                if reads:
                    if self._player is not None:
                        self._player.show()
                    return
                self.play(crossing, taped, files, sent)
                for number in self._early:
                    self._signalled(number)

        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(play_later,), daemon=True).start()

    def play(
        self,
        crossing: Crossing,
        taped: Taped,
        files: dict[int, int],
        sent: bool,
        *,
        is_held: bool = False,
    ) -> None:
        """Play a taped process to the shim. `sent`: the request contains everything that goes to stdin. `is_held`: its
        output and its exit wait for `Player.show`.
        """
        self._crossing = crossing
        if taped.how == "raised":
            crossing.raised(taped.error)
            # The exit codes of a shell: a shim exists, so it cannot fail with "not found" itself.
            codes = {FileNotFoundError: 127, PermissionError: 126}
            why = f"{crossing.call.name}: {taped.error}"
            self._say(refusal(why, codes.get(type(taped.error), REFUSED)))
            return
        script = process_script.script_of(taped, sent=sent)
        script = replace(script, has_own_clock=self.has_own_clock, is_read_unseen=True)
        # If the recorded run was killed here, the command is killed now.
        dies = taped.dies is not None and self._deck.ends_command is not None
        if script.cut and not dies:
            self._part(f"The tape of {crossing.call.name} ends here: the recorded run was killed.")
            script = replace(script, ending=REFUSED)
        flight = _Heard(crossing, self, sent=sent)
        stand_in = process_stand_in.IN_SHELL
        script = script.held() if is_held else script
        player = self._player = flight.player = process_player.Player(script, flight, stand_in)
        self._fds = []
        for fd, own in files.items():
            stream = _STREAM_OF[fd]
            if (fd == 0 and not sent) or player.wants(stream):
                # The shim recorded in front of a second terminal, which did not translate: see terminals.c.
                player.take(stream, own, cooked=True)
            else:
                os.close(own)
        # An agent that inspects its own work (OpenCode gives git a list of changed files) does so at other moments.
        flight.sent = sent or SIDE in crossing.call.facts
        for piece in taped.pieces:
            crossing.chunk(piece.data, piece.stream)
        if self._asked is not None and self._asked.is_fenced:
            for path, content in files_to_write(self._asked.argv, taped.facts):
                self._say(write_frame(path, content))
        control = player.ready()
        with suppress(OSError):
            socket.send_fds(self.line, [frame(b"P")], [control])
        player.go()
        if script.cut and dies:
            crossing.cut()

    def _part(self, detail: str) -> None:
        if self._crossing is not None:
            advice = "Record the run again, or let this process run for real: `--live process`."
            self._deck.part(self._crossing.call, "parted", detail, advice)

    def diverged(self, error: Divergence) -> None:
        """Tell the shim that the program sends other data to the process than in the recorded run."""
        self._say(refusal(str(error)))

    def leave(self) -> None:
        """End the call: the shim has disconnected, or the run ends first."""
        with self._playing:
            self._has_left = True
        if self._ref is not None and answer_order.current is not None:
            answer_order.current.end(self._ref)
        self._say(frame(b"Q"))
        crossing, player = self._crossing, self._player
        if player is not None and not player.is_over:
            player.give_up()
        if crossing is not None and crossing.taped is not None and crossing.taped.how == "returned":
            crossing.returned(crossing.taped.value, **crossing.taped.facts)
        elif crossing is not None and self._asked is not None:
            self._read_files(crossing)
            crossing.left(pid=self._asked.pid)
        for fd in self._fds:
            os.close(fd)
        self._fds = []
        self.line.close()

    def _say(self, said: bytes) -> None:
        with suppress(OSError):  # it has disconnected, which the next read reports
            self.line.sendall(said)


class _Shim(Adapter):
    """The call of a shim. Its outcome comes with the shim's later frames, or from the player."""

    streams = True

    def __init__(
        self, caller: Caller, asked: ShimCall, lane: str, files: dict[int, int], sent: bool
    ) -> None:
        self._caller = caller
        self._asked = asked
        self._lane = lane
        self._files = files
        self._sent = sent

    def live(self, crossing: Crossing) -> None:
        self._caller.start(crossing, self._asked, self._lane, self._files)

    def observe(self, crossing: Crossing, result: None) -> None:
        """The shim reports its output and exit in messages."""

    def serve(self, crossing: Crossing) -> None:
        if crossing.taped is not None:
            self._caller.play_in_order(crossing, crossing.taped, self._files, self._sent)


class _Heard(Flight):
    """A taped process that is played to a shim."""

    __slots__ = ("_caller",)

    def __init__(self, crossing: Crossing, caller: Caller, *, sent: bool) -> None:
        super().__init__(crossing, sent=sent)
        self._caller = caller

    def diverged(self, error: Divergence) -> None:
        self._caller.diverged(error)
        super().diverged(error)


class ChildLanes:
    """Lanes for started processes: the n-th `git` of a lane has the same name in every run."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}

    def below(self, lane: str, name: str) -> str:
        count = self._counts[lane, name] = self._counts.get((lane, name), 0) + 1
        # A shell in a shell in a shell… must not grow the name without limit.
        return f"{lane}/{name}-{count}" if lane.count("/") < _DEEPEST else lane


_DEEPEST = 12

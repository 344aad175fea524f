"""The one door between an agent and the world: every call of every boundary goes through `Deck.perform`.

Knows calls, the mode that answers them and the recorder; does not know httpx or subprocesses. A boundary
brings a `Call` and an `Adapter` (see `playhead.recording.adapter`). The deck alone decides whether the call is
performed or served, and no boundary asks which mode is active.
"""

from __future__ import annotations

from playhead import events
from playhead.encoding.values import safe_str
from playhead.errors import Divergence
from playhead.host.interrupts import is_interrupt
from playhead.host.later import Later
from playhead.host.lean import Protocol
from playhead.recording import ambient, lanes, order_slot, pacing, tool_facts
from playhead.recording.chunks import MESSAGES as MESSAGES  # noqa: PLC0414  (handed on)
from playhead.recording.crossing import END
from playhead.recording.crossing import Crossing as Crossing  # noqa: PLC0414  (handed on)
from playhead.recording.crossing import inside as _inside
from playhead.recording.encoder import NewEvent
from playhead.recording.recorder import Recorder

# Re-exported from `scopes`, so that hooks need only this module.
from playhead.recording.scopes import activate as activate  # noqa: PLC0414
from playhead.recording.scopes import active as active  # noqa: PLC0414
from playhead.recording.scopes import all_intercepting as all_intercepting  # noqa: PLC0414
from playhead.recording.scopes import close_scope as close_scope  # noqa: PLC0414
from playhead.recording.scopes import deactivate as deactivate  # noqa: PLC0414
from playhead.recording.scopes import declared as declared  # noqa: PLC0414
from playhead.recording.scopes import is_open as is_open  # noqa: PLC0414
from playhead.recording.scopes import is_replay as is_replay  # noqa: PLC0414
from playhead.recording.scopes import of_process as of_process  # noqa: PLC0414
from playhead.recording.scopes import open_scope as open_scope  # noqa: PLC0414
from playhead.recording.tool_facts import ToolRequests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar

    from playhead.events import Ref
    from playhead.recording import points
    from playhead.recording.adapter import Adapter
    from playhead.recording.calls import Call as Call  # noqa: PLC0414  (handed on: see __getattr__)
    from playhead.recording.calls import Piece as Piece  # noqa: PLC0414
    from playhead.recording.calls import Taped as Taped  # noqa: PLC0414
    from playhead.workspace.watch.call_marks import CallMarks

    T = TypeVar("T")

    # See `hooks.process.children`.
    Carrier = Callable[
        [list[str], "Mapping[str, str] | None", str], tuple[list[str], "dict[str, str] | None"]
    ]


class Mode(Protocol):
    """Decides how a call is answered: returns a taped answer, or None for a live call. Raises a Divergence if the call
    may not be made and has no answer.
    """

    def answer(self, call: Call, lane: str) -> Taped | None: ...


class Rewriting(Protocol):
    """A mode that may change the body of a live request."""

    @property
    def rewrites(self) -> bool: ...

    def rewrite(self, call: Call, body: bytes) -> bytes: ...


# Boundaries whose calls a model may request.
_CAUSED = frozenset({"tool", "mcp", "process"})


class Deck:
    """Holds the mode and the recorder of this process."""

    def __init__(self, recorder: Recorder, mode: Mode | None = None) -> None:
        self.recorder = recorder
        self.mode = mode
        self._rewriting: tuple[Mode | None, Rewriting | None] = (None, None)
        # The calls that are performed for real during a replay.
        self.live: set[Crossing] = set()
        # The tool calls that models have requested and that have not been made yet.
        self.asked = ToolRequests()
        # Passes models' answers on to another process, which makes the calls that they request.
        self.heard_too: Callable[[str, str, int, Mapping[str, str], bytes], None] | None = None
        # Where calls are marked for the process that watches the workspace; None: nothing watches.
        self.marks: CallMarks | None = None
        # For a run that was opened in a thread or a task, beside others: its clock and entropy, the log of its points,
        # and how its children join it.
        self.source: ambient.Source | None = None
        self.log: points.PointLog | None = None
        self.carrier: Carrier | None = None
        # False: the run has only the calls of tools and stores that the program declares, although hooks of
        # another run may be in place.
        self.intercepts = True

    @property
    def brings_input(self) -> bool:
        """Return whether input from outside comes from a tape, as the connections to a server do in a replay."""
        return self.mode is not None

    @property
    def rewriting(self) -> Rewriting | None:
        """Return the mode if it may change requests. Looked up once per mode: a look-up of two attributes on each call
        costs as much as writing an event.
        """
        mode, rewriting = self._rewriting
        if mode is not self.mode:
            found: Any = self.mode
            rewriting = found if hasattr(found, "rewrite") and hasattr(found, "rewrites") else None
            self._rewriting = self.mode, rewriting
        return rewriting

    def perform(self, call: Call, adapter: Adapter) -> Any:
        """Perform the call or serve it from the tape; return the value for the client.

        Raises the exception of the call, live or taped, or a Divergence if a replay has no answer.
        """
        crossing = self._open(call, adapter)
        if crossing.taped is not None:
            try:
                if not adapter.streams:
                    if call.boundary == "tool" and crossing.taped.pieces:
                        tool_facts.serve(crossing)
                    crossing.reach(END)
                return adapter.serve(crossing)
            except BaseException as error:
                adapter.failed(crossing, error)  # ignored where `serve` has reported it
                raise
        with crossing:
            try:
                result = adapter.live(crossing)
            except BaseException as error:
                adapter.failed(crossing, error)
                raise
        return adapter.observe(crossing, result)

    async def perform_async(self, call: Call, adapter: Adapter) -> Any:
        """Do the same as `perform` for an adapter whose `live` returns an awaitable, as does `serve` if it streams."""
        crossing = self._open(call, adapter)
        if crossing.taped is not None:
            try:
                if adapter.streams:
                    return await adapter.serve(crossing)
                if call.boundary == "tool" and crossing.taped.pieces:
                    await tool_facts.serve_async(crossing)
                await crossing.reach_end_async()
                return adapter.serve(crossing)
            except BaseException as error:
                adapter.failed(crossing, error)  # as above
                raise
        with crossing:
            try:
                result = await adapter.live(crossing)
            except BaseException as error:
                adapter.failed(crossing, error)
                raise
        return adapter.observe(crossing, result)

    def _open(self, call: Call, adapter: Adapter) -> Crossing:
        """Write the call to the tape, and decide how it is answered."""
        ambient.flush()
        order_slot.step()
        recorder = self.recorder
        mode = self.mode
        if mode is None:
            return Crossing(self, call, None)
        lane = lanes.current.get()
        taped = mode.answer(call, lane.name)
        if taped is not None:
            # A timeout that the program sets now counts from this moment of the tape, however quickly the replay came
            # here.
            lane.reach(taped.began_ns)
            crossing = Crossing(self, call, taped)
            if taped.ends_at_once and taped.dies is not None:
                taped.dies()  # not before the call is written: the recorded program had made it
            return crossing
        instead: bytes | None = None
        rewriting = self.rewriting
        if rewriting is not None and rewriting.rewrites and call.boundary == "llm":
            body = adapter.body
            if body is None:
                why = adapter.unchangeable
                recorder.append(
                    NewEvent(events.HOLE, {"boundary": "llm", "what": "rewrite", "why": why})
                )
            else:
                instead = rewriting.rewrite(call, body)
                if instead == body:
                    instead = None
                else:
                    # The tape must show the request that is really sent.
                    call = adapter.with_body(instead)
        crossing = Crossing(self, call, None, instead)
        self.live.add(crossing)
        pacing.go_live(call.boundary)
        return crossing

    def describe(self, make: Callable[[], T], what: str, boundary: str) -> T | None:
        """Return the description of a call that `make` builds; None if it raises, and the call is not recorded.

        Descriptions are built from other libraries' objects, which may not be as expected. Recording fails
        open: it continues without this call. Replay fails closed: the call must not run for real, so the
        error is raised.
        """
        try:
            return make()
        except Exception as error:  # noqa: BLE001  (raised again where it must be)
            self.undescribed(error, what, boundary)
            return None

    def undescribed(self, error: Exception, what: str, boundary: str) -> None:
        """Record that a call could not be described. Raises the error again if the call must not run unseen."""
        if self.mode is not None or is_interrupt(error):
            raise error
        why = f"{type(error).__name__}: {safe_str(error)}"
        self.recorder.warn(f"{what} could not be recorded ({why}).")
        self.recorder.append(
            NewEvent(events.HOLE, {"boundary": boundary, "what": what, "why": why})
        )

    def unfollowed(self, boundary: str, what: str, why: str) -> None:
        """Report that a boundary is about to be crossed in a way that no hook follows. That is a hole on the tape of a
        recording, and a Divergence in a replay, where nothing may be sent unseen.
        """
        if self.mode is not None:
            raise Divergence(f"A replay cannot answer {what}: {why}. Nothing was sent.")
        self.recorder.append(
            NewEvent(events.HOLE, {"boundary": boundary, "what": what, "why": why})
        )

    def unserved(self, server: str, why: str) -> None:
        """Report that the program serves requests that are not recorded. The run is then `partial`: a replay could not
        send them again.
        """
        if self.mode is None:
            what = f"requests to {server}"
            hole = {"boundary": "input", "what": what, "why": why, "server": server}
            self.recorder.append(NewEvent(events.HOLE, hole))

    def unanswerable(self, what: str, why: str) -> None:
        """Report that the tape has a conversation which a replay cannot have again. The run is then `partial`."""
        if self.mode is None:
            hole = {"boundary": "stream", "what": what, "why": why, "unanswerable": what}
            self.recorder.append(NewEvent(events.HOLE, hole))

    def part(self, call: Call, kind: str, detail: str, advice: str | None = None) -> None:
        """Report a divergence within a call that is being served: the program uses the answer in another way than the
        recorded program did.
        """
        if self.mode is not None and hasattr(self.mode, "part_within"):
            self.mode.part_within(call, lanes.current.get().name, kind, detail, advice)

    def look_last(self, look: Callable[[], None]) -> None:
        """Call `look` in a replay before this process ends, however it ends."""
        mode: Any = self.mode
        if mode is not None and hasattr(mode, "last_looks"):
            if not mode.last_looks:
                self.recorder.last_words.append(mode.look_a_last_time)
            mode.last_looks.append(look)

    def has_answer(self, call: Call) -> bool:
        """Return whether this call can be performed or served now. False: a replay has no answer left for it."""
        mode: Any = self.mode
        if mode is None or not hasattr(mode, "look"):
            return True
        return mode.look(call, lanes.current.get().name) is not None

    def rematch(self, crossing: Crossing, fits: Callable[[Taped], bool]) -> None:
        """Serve another taped call of the same name from here on: the first whose answer `fits`.

        For calls that are equal when they are made, and differ in what is sent afterwards: WebSocket
        handshakes.
        """
        if crossing.taped is not None and self.mode is not None and hasattr(self.mode, "rematch"):
            crossing.taped = self.mode.rematch(crossing.taped, fits)

    @property
    def ends_command(self) -> Callable[[], None] | None:
        """Return the function that ends the replayed command the way the recorded one ended, if another process can do
        that: for decks outside of the command's own process.
        """
        mode: Any = self.mode
        return mode.die if mode is not None and getattr(mode, "mortal", None) else None

    @property
    def was_killed_here(self) -> bool:
        """Return whether a signal ended the recorded command, and all calls that it had made by then are served."""
        return bool(getattr(self.mode, "is_where_it_was_killed", False))

    def is_inside(self, *boundaries: str) -> bool:
        """Return whether the code running now is already part of a crossing of one of these boundaries:
        a client on top of another client must not be recorded twice.
        """
        inside = _inside.get()
        return bool(inside) and any(one.boundary in boundaries for one in inside)

    @property
    def is_inside_owner(self) -> bool:
        """Return whether a call around the code running now owns the file changes that this code makes."""
        return any(one.owns_changes for one in _inside.get())

    def cause_of(self, call: Call) -> Ref | None:
        """Return the LLM call whose answer requested this call. Recording fails open: None if in doubt."""
        if call.boundary not in _CAUSED or not self.asked.anything:
            return None
        try:
            name = self._name_of_cause(call)
        except Exception as error:  # the answer is untrusted, and the arguments belong to the host
            if is_interrupt(error):
                raise
            self.recorder.warn(
                f"the cause of {call.name} cannot be determined ({safe_str(error)})."
            )
            return None
        segment, _, seq = (name or "").rpartition(":")
        return int(seq) if segment == self.recorder.segment else name

    def _name_of_cause(self, call: Call) -> str | None:
        if call.boundary in ("tool", "mcp"):
            # A tool that passes its call on to an MCP server of the same name was requested once.
            inside = _inside.get()
            if inside and inside[-1].name == call.name and inside[-1].boundary in ("tool", "mcp"):
                return None
            request = call.request if isinstance(call.request, dict) else {}
            return self.asked.who_asked(call.name, request.get("arguments"))
        if call.boundary == "process" and not _inside.get():
            return self.asked.who_wrote(str(call.facts.get("command", "")))
        return None

    def forked(self) -> None:
        self.asked.make_lock()

    def hear(self, seq: Ref, call: Call, head: Any, body: bytes) -> None:
        """Note the answer of an LLM: the tool calls that it requests may be made from now on."""
        head = head if isinstance(head, dict) else {}
        headers = {str(name).lower(): str(value) for name, value in head.get("headers") or ()}
        status = head.get("status", 200)
        # By a name that is also valid in a child that is forked later.
        name = seq if isinstance(seq, str) else f"{self.recorder.segment}:{seq}"
        api = str(call.facts.get("api", ""))
        status = status if isinstance(status, int) else 200
        self.learn(name, api, status, headers, body)
        if self.heard_too is not None:
            self.heard_too(name, api, status, headers, body)

    def learn(
        self, name: str, api: str, status: int, headers: Mapping[str, str], body: bytes
    ) -> None:
        """Keep the answer of an LLM call with this name, made in this or in another process of the run."""
        self.asked.hear(name, api, status, headers, body)


def inside() -> tuple[Call, ...]:
    """Return the calls that the code running now is part of, innermost last."""
    return _inside.get()


_calls = Later("playhead.recording.calls")


def __getattr__(name: str) -> Any:
    """Load `Call`, `Piece` and `Taped` when they are first used: see `playhead.recording.calls`."""
    if name not in ("Call", "Piece", "Taped"):
        raise AttributeError(f"module 'playhead.recording.deck' has no attribute {name!r}")
    value = globals()[name] = getattr(_calls, name)
    return value

"""One iteration of a session: its prompt, its response as it arrives, its decision, on disk and on the tape.
Knows what is written where; does not know how the agent is run, nor which iteration is next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from playhead import clock
from playhead.events import Level
from playhead.host.later import Later
from playhead.loop import files
from playhead.loop import state as states
from playhead.loop.files import Answer, Tell, begin_call, begin_turn, end_call, end_turn
from playhead.loop.stages import Decision, Stage, decide
from playhead.loop.state import Open, clear_status
from playhead.recording import lanes

if TYPE_CHECKING:
    from playhead import transcripts as streams
    from playhead.loop.session import Session
    from playhead.recording import adapter, deck
    from playhead.redact import Redactor
    from playhead.transcripts import AgentStream, ProgressLine, StreamSummary
else:
    # A step of a shell script makes no calls.
    adapter, deck = Later("playhead.recording.adapter"), Later("playhead.recording.deck")
    streams = Later("playhead.transcripts")  # a step that reads no response need not wait for it


class RecordedLoop(NamedTuple):
    """The recording of a session. `calls`: the session itself must record its commands, because nothing else does."""

    run: Path
    level: Level
    tell: Tell
    redactor: Redactor | None
    calls: bool


class Iteration:
    """One iteration of the agent. It receives the prompt, the response as it arrives, and how the command ended."""

    def __init__(self, session: Session, opened: Open) -> None:
        self.session = session
        self.opened = opened
        self.is_open = True
        self.decision: Decision | None = None
        # The agent's own summary of its stream; None: the output is not an agent's stream, or has not ended.
        self.outline: StreamSummary | None = None
        self.took_ns = 0
        self._decided: str | None = None
        self._is_whole = False
        self._conversation = ""
        self._stream: AgentStream | None = None
        self._token: Any = None
        recorded = session.recorded
        self._files = None if recorded is None else _files_of(session, recorded, opened)

    @property
    def stage(self) -> Stage:
        return self.session.state.stages[self.opened.stage]

    @property
    def number(self) -> int:
        return self.opened.number

    @property
    def name(self) -> str:
        """Return the name and the position in the stage: `work 2/5`."""
        most = f"/{self.stage.most}" if self.stage.most else ""
        return f"{self.stage.name} {self.number}{most}"

    @property
    def folder(self) -> Path | None:
        return None if self._files is None else self._files.folder

    @property
    def is_agent(self) -> bool:
        """Return whether the response is a stream that we can read."""
        return self._stream is not None and self._stream.reader is not None

    def environment(self) -> dict[str, str]:
        """The variables that are set for the command of this iteration."""
        facts = {
            "PLAYHEAD_SESSION": self.session.name,
            "PLAYHEAD_STAGE": self.stage.name,
            "PLAYHEAD_ITERATION": str(self.number),
            "PLAYHEAD_ITERATIONS": str(self.stage.most or ""),
            "PLAYHEAD_STATUS": str(self.session.status_file),
        }
        if self.session.context is not None:
            facts["PLAYHEAD_CONTEXT"] = str(self.session.context)
        return facts

    def make(self) -> None:
        """Create the files: the folder, a copy of the current context, an empty status file."""
        if self._files is not None:
            self._files.make(self.opened.wall_ns)
        context = self.session.context
        try:
            if self._files is not None and context is not None and self.session.keeps_state:
                suffix = context.suffix or ".txt"
                self._files.text(f"context{suffix}", context.read_bytes(), copied=True)
        except OSError as error:
            self.session.complain(error)
        self.session.save(states.begun(self.session.state, self.opened))
        try:
            if self.session.keeps_state:
                clear_status(self.session.folder)
        except OSError as error:
            self.session.complain(error)

    def prompt(self, text: str, *, command: str = "agent") -> None:
        """Record the prompt; `command` is the display name of the agent."""
        if self._files is not None:
            self._files.text("prompt.md", text.encode("utf-8", "backslashreplace"))
        self._tell_begin(text, command)

    def _tell_begin(self, prompt: str | None, command: str) -> None:
        recorded = self.session.recorded
        if recorded is None:
            return
        level = recorded.level
        context = None if self._files is None else self._files.context()
        turn = begin_turn(recorded.tell, self.name, prompt=prompt, context=context, level=level)
        call = None
        if recorded.calls:
            call = begin_call(recorded.tell, turn, command, prompt=prompt, level=level)
        self.opened = self.opened._replace(turn=turn, call=call)
        self.session.state = self.session.state._replace(open=self.opened)
        if turn is not None:
            self._token = lanes.enclosing.set(turn)

    def piece(self, raw: bytes) -> list[ProgressLine]:
        """Record a piece of the response as it arrives. Return the lines of progress in it."""
        if self._files is not None:
            self._files.piece(raw)
        if self._stream is None:
            self._stream = streams.AgentStream()
        return self._stream.feed(raw)

    def response(self, text: str | bytes) -> None:
        """Record the whole response at once. Nothing else records it, so it is written with the turn."""
        self._is_whole = True
        self.piece(text if isinstance(text, bytes) else text.encode("utf-8", "backslashreplace"))

    def decide(self, word: str, reason: str | None = None) -> None:
        """Set the decision from Python; a command writes it into its status file."""
        self._decided = f"{word} {reason or ''}".strip()

    def end(
        self,
        *,
        exit_code: int | None = None,
        left: Mapping[str, Any] | None = None,
        complaint: str = "",
    ) -> Decision:
        """End the iteration and write its decision to disk and to the tape. `left` are the files it left behind;
        `complaint` is the last line of its stderr.
        """
        self._close_stream()
        if left is None:
            # In a replay no agent runs that could write the status file.
            found = as_call("loop.status", self, self.left)
            left = found if isinstance(found, dict) else {}  # a tape may contain any value
        self.took_ns = int(left.get("took_ns") or 0)
        written = str(left.get("status") or "")
        failure = None if self.outline is None else self.outline.error
        self.decision = decide(written, exit_code=exit_code, failure=failure, complaint=complaint)
        self._finish(self.decision, "returned", exit_code)
        after = states.ended(self.session.state, self.decision.word, self.decision.reason)
        self.session.save(after)
        return self.decision

    def left(self) -> dict[str, Any]:
        """Return the files that the iteration has left behind."""
        took = clock.wall_ns() - self.opened.wall_ns
        if self._decided is not None:
            return {"status": self._decided, "took_ns": took}
        try:
            written = self.session.status_file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            written = ""  # the agent removed it, or never wrote it: there is no decision
        return {"status": written, "took_ns": took}

    def interrupt(self, error: BaseException | None = None) -> None:
        """End an unfinished iteration: it is recorded as far as it came, and `resume` makes it again."""
        self._close_stream()
        self.took_ns = clock.wall_ns() - self.opened.wall_ns
        failed = error is not None and isinstance(error, Exception)
        reason = f"{type(error).__name__}: {error}" if failed else "interrupted"
        self._finish(Decision(word="error", reason=reason), "cut", None)
        status = "error" if failed else "interrupted"
        self.session.save(self.session.state._replace(open=None, status=status, reason=reason))

    def _finish(self, decision: Decision, how: str, exit_code: int | None) -> None:
        self.is_open = False
        recorded = self.session.recorded
        if recorded is None or self._files is None:
            return
        if self.opened.turn is None:
            self._tell_begin(None, "agent")  # no prompt was recorded
        if self._token is not None:
            lanes.reset(lanes.enclosing, self._token)
            self._token = None
        text = "" if self.outline is None else self.outline.text
        ended = self.opened.wall_ns + self.took_ns
        self._files.end(text, decision, files.timing_of(self.opened.wall_ns, ended, exit_code))
        said = Answer(
            response=self._files.response,
            how=how,
            took_ns=self.took_ns,
            exit_code=exit_code,
            usage=self._usage(),
            conversation=self._conversation,
        )
        end_call(recorded.tell, self.opened.call, said, level=recorded.level)
        value: dict[str, Any] = {"exit_code": exit_code}
        if recorded.level == "full" and text:
            value["text"] = text
        elif recorded.level == "full" and self._is_whole and not recorded.calls:
            value["text"] = self._files.response.raw.decode("utf-8", "replace")
        end_turn(
            recorded.tell,
            self.opened.turn,
            self.name,
            took_ns=self.took_ns,
            decision=decision._replace(reason=self._files.reason_of(decision)),
            value=None if recorded.level == "minimal" else value,
            level=recorded.level,
        )

    def _close_stream(self) -> None:
        if self._stream is not None:
            steps = self._stream.close()
            if self.is_agent:
                self.outline, self._conversation = (
                    streams.outline(steps),
                    streams.conversation(steps),
                )

    def _usage(self) -> dict[str, Any]:
        if self.outline is None:
            return {}
        usage: dict[str, Any] = dict(self.outline.usage)
        if self.outline.cost_usd is not None:
            usage["cost_usd"] = self.outline.cost_usd
        return {**usage, "answers": self.outline.answers, "tools": self.outline.tools}


def _files_of(session: Session, recorded: RecordedLoop, opened: Open) -> files.IterationFiles:
    stage = session.state.stages[opened.stage]
    folder = files.folder_of(recorded.run, opened.stage, stage.name, opened.number)
    return files.IterationFiles(
        folder, level=recorded.level, redactor=recorded.redactor, complain=session.complain
    )


def as_call(name: str, iteration: Iteration, live: Callable[[], Any]) -> Any:
    """Record the result of `live` as a call of the iteration; a replay serves it from the tape."""
    recorded = iteration.session.recorded
    if recorded is None or recorded.calls or recorded.level != "full":
        return live()
    active = deck.declared()
    if active is None:
        return live()
    asked = {"stage": iteration.stage.name, "iteration": iteration.number}
    call = deck.Call(boundary="state", name=name, request=asked, effect="read")
    return active.perform(call, adapter.FunctionAdapter(live))

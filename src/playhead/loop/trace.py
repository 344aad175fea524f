"""The events of a session: what the tape tells of each iteration. Knows kinds of events; not who writes
them: a recorder in this process, or one command of a shell script after the other.

An iteration is a turn. Where nobody else has seen its command run (below `full`, in a shell script), the
command stands in it as a call, with the response for its stdout.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from playhead import events
from playhead.encoding.values import Frozen
from playhead.events import Level, Ref
from playhead.host.later import Later

if TYPE_CHECKING:
    from playhead.loop.files import Response
    from playhead.recording import chunks
else:
    chunks = Later("playhead.recording.chunks")  # only a response needs it


class Tell(Protocol):
    """Writes an event and gives back its seq; None: it is lost. `clean`: no secret is in it."""

    def __call__(
        self, kind: str, data: Any, parent: Ref | None, *, clean: bool = False
    ) -> Ref | None: ...


class Answer(NamedTuple):
    """What came back from the command of an iteration. `how` as outcomes have it."""

    response: Response
    how: str
    took_ns: int
    exit_code: int | None
    # Tokens, cost and counts, as far as the agent said them.
    usage: Mapping[str, Any]


def begin(tell: Tell, name: str, *, prompt: str | None, level: Level) -> Ref | None:
    data: dict[str, Any] = {"name": name}
    if level != "minimal" and prompt is not None:
        data["input"] = prompt
    return tell(events.TURN_START, data, None)


def ask(
    tell: Tell, turn: Ref | None, command: str, *, prompt: str | None, level: Level
) -> Ref | None:
    """The command as a call: at `minimal` the turn alone says that there was one."""
    if level == "minimal":
        return None
    request = {"stdin": {"text": prompt or ""}}
    return tell(events.CALL, {"boundary": "process", "name": command, "request": request}, turn)


def answer(tell: Tell, call: Ref | None, said: Answer, *, level: Level) -> None:
    if call is None:
        return
    response = said.response
    if level == "full" and response.raw:
        chunk: dict[str, Any] = {"call": call, "stream": "stdout", **chunks.as_text(response.raw)}
        chunk |= {"sizes": [response.size], "at_ns": [said.took_ns]}
        tell(events.CHUNK, chunk, call, clean=True)
    ended: dict[str, Any] = {
        "call": call,
        "how": said.how,
        "took_ns": said.took_ns,
        "bytes": response.size,
        "exit_code": said.exit_code,
    }
    if level == "standard":
        # At `full` the response itself says so.
        ended["usage"] = dict(said.usage) or None
        ended["value"] = response.digest  # what is kept is a hash of it, the same for the same
    tell(events.OUTCOME, ended, call)


def end(
    tell: Tell, turn: Ref | None, name: str, *, took_ns: int, failure: str | None, value: Any
) -> None:
    data: dict[str, Any] = {"turn": turn, "name": name, "took_ns": took_ns}
    if failure is None:
        data |= {"how": "returned", "value": value}
    else:
        error = Frozen({"$exception": "IterationFailed", "message": failure})
        data |= {"how": "raised", "error": error}
    tell(events.TURN_END, data, turn)

"""Record one iteration: its folder (prompt, response, text, context, decision, timing) and its events on the tape.

    stage-00-plan/iterations/001/
      prompt.md  response.jsonl  text.md     at `full`; at `standard`, NAME.sha256 (hash, bytes)
      context.md                             at `full` and `standard`
      status.json  timing.json               at every level

Knows levels, secrets and permissions; does not know how the iteration is run. A disk error costs files, never the
iteration: `complain` receives the message.

On the tape an iteration is a turn. If the command itself is not recorded (below `full`, in a shell script), the
turn contains it as a call, with the response as its stdout. The events are written by a recorder in this process,
or by the successive commands of a shell script.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from playhead import clock, events
from playhead.encoding.values import Frozen
from playhead.events import Level, Ref
from playhead.host.later import Later
from playhead.redact.streams import StreamCleaner
from playhead.tape.blobs import THRESHOLD, blob_path
from playhead.tape.store import move_aside

if TYPE_CHECKING:
    from playhead.loop.stages import Decision
    from playhead.recording import chunks
    from playhead.redact import Redactor
else:
    chunks = Later("playhead.recording.chunks")  # only a response needs it


Complain = Callable[[OSError], None]
# Characters of a reason at `minimal`, and of a context on the tape. The folder has the whole context; the tape has
# the part that is shown and searched.
SHORT_REASON = 120
MOST_CONTEXT = 8_000


def folder_of(run: Path, stage: int, name: str, number: int) -> Path:
    return run / f"stage-{stage:02d}-{name}" / "iterations" / f"{number:03d}"


class Response(NamedTuple):
    """A raw response without its secrets; below `full`, only its size and hash."""

    raw: bytes
    digest: str
    size: int


class IterationFiles:
    """The files of one iteration. Each method may run in another process than the previous one."""

    def __init__(
        self, folder: Path, *, level: Level, redactor: Redactor | None, complain: Complain
    ) -> None:
        self.folder = folder
        self._level = level
        self._redactor = redactor
        self._complain = complain
        self._response: _Response | None = None
        # The whole response, once it has ended.
        self.response = Response(raw=b"", digest="", size=0)

    def make(self, at_wall_ns: int) -> None:
        """Create an empty folder. The files of an interrupted iteration with this number are moved aside."""
        try:
            if self.folder.exists():
                move_aside(self.folder, at_wall_ns)
            for above in (*reversed(self.folder.parents[:2]), self.folder):
                above.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            self._complain(error)

    def text(self, name: str, raw: bytes, *, copied: bool = False) -> None:
        """Write a text, or below `full` its hash. `copied`: write the text at `standard` as well."""
        if self._level == "minimal":
            return
        clean = raw if self._redactor is None else self._redactor.clean_bytes(raw)
        if self._level == "full" or copied:
            self._write(name, clean)
        else:
            self._write_hash(name, hashlib.sha256(clean).hexdigest(), len(clean))

    def piece(self, raw: bytes) -> None:
        """Append a piece of the response as it arrives: after a kill, the file has everything that was received."""
        if self._level == "minimal":
            return
        try:
            if self._response is None:
                name = "response.jsonl" if raw.lstrip()[:1] == b"{" else "response.txt"
                self._response = _Response(name, self._redactor)
                if self._level == "full":
                    self._response.open(self.folder / name)
            self._response.feed(raw)
        except OSError as error:
            self._complain(error)

    def end(self, text: str, decision: Decision, timing: dict[str, Any]) -> None:
        if self._response is not None:
            self._end_response(self._response)
            self._response = None
        if text:
            self.text("text.md", text.encode("utf-8", "backslashreplace"))
        said: dict[str, Any] = {"decision": decision.word}
        if self._level == "full":
            said = {**self._cleaned(dict(decision.said)), **said}
        if decision.reason is not None:
            said["reason"] = self.reason_of(decision)
        self._write("status.json", _json(said))
        self._write("timing.json", _json(timing))

    def reason_of(self, decision: Decision) -> str | None:
        """Return the reason as it is recorded: shortened at `minimal`."""
        if decision.reason is None:
            return None
        clean = str(self._cleaned(decision.reason))
        return clean if self._level != "minimal" else _shortened(clean, SHORT_REASON)

    def context(self) -> str | None:
        """Return the copied context for the tape; a long one is shortened. None: there is no context."""
        if self._level == "minimal":
            return None
        try:
            copy = next(iter(sorted(self.folder.glob("context.*"))), None)
            text = None if copy is None else copy.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            self._complain(error)
            return None
        return None if text is None else _shortened(text, MOST_CONTEXT)

    def _end_response(self, response: _Response) -> None:
        try:
            response.close()
        except OSError as error:
            self._complain(error)
        self.response = Response(
            raw=b"".join(response.clean), digest=response.hash.hexdigest(), size=response.size
        )
        if self._level != "full":
            self._write_hash(response.name, self.response.digest, response.size)
        else:
            self._share(self.folder / response.name, self.response)

    def _share(self, file: Path, response: Response) -> None:
        """Share a large response with the tape. A payload that is too large for a line of the tape is a file
        named after its content; a hard link makes this file that one, so nothing is written twice.
        """
        run = self.folder.parents[2]
        if response.size <= THRESHOLD:
            return
        path = blob_path(run, response.digest)
        try:
            path.parent.parent.mkdir(mode=0o700, exist_ok=True)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            os.link(file, path)
        except OSError:
            return  # it exists already, or the file system has no links: then it is written again

    def _cleaned(self, value: Any) -> Any:
        return value if self._redactor is None else self._redactor.clean(value)

    def _write_hash(self, name: str, digest: str, size: int) -> None:
        self._write(f"{name}.sha256", f"{digest} {size}\n".encode())

    def _write(self, name: str, raw: bytes) -> None:
        try:
            write_private(self.folder / name, raw)
        except OSError as error:
            self._complain(error)


class _Response:
    """Writes the raw response to a file, or computes its hash; secrets are removed across pieces."""

    def __init__(self, name: str, redactor: Redactor | None) -> None:
        self.name = name
        self.hash = hashlib.sha256()
        self.size = 0
        self.clean: list[bytes] = []
        self._cleaner = None if redactor is None else StreamCleaner(redactor)
        self._fd: int | None = None

    def open(self, target: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._fd = os.open(target, flags, 0o600)

    def feed(self, raw: bytes) -> None:
        if self._cleaner is None:
            self._keep(raw)
        else:
            self._keep(b"".join(piece for piece, _ in self._cleaner.feed([(raw, 0)])))

    def close(self) -> None:
        try:
            if self._cleaner is not None:
                rest = self._cleaner.feed([], last=True)
                self._keep(b"".join(piece for piece, _ in rest))
        finally:
            if self._fd is not None:
                os.close(self._fd)
                self._fd = None

    def _keep(self, clean: bytes) -> None:
        self.hash.update(clean)
        self.size += len(clean)
        if self._fd is not None:
            self.clean.append(clean)
        view = memoryview(clean)
        while view and self._fd is not None:
            view = view[os.write(self._fd, view) :]


def write_private(path: Path, raw: bytes) -> None:
    """Write the whole file or none: half a file would be read as a complete one."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(raw)
    except OSError:
        os.unlink(path)
        raise


def timing_of(started_ns: int, ended_ns: int, exit_code: int | None) -> dict[str, Any]:
    return {
        "started_at": _milliseconds(started_ns),
        "ended_at": _milliseconds(ended_ns),
        "duration_s": round((ended_ns - started_ns) / 1e9, 3),
        "exit_code": exit_code,
    }


def _milliseconds(wall_ns: int) -> str:
    """Return a time in milliseconds. An agent takes seconds, and shorter texts keep an iteration small at `minimal`."""
    return clock.iso(wall_ns)[: len("2026-11-16T05:29:22.073")] + "Z"


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _json(members: dict[str, Any]) -> bytes:
    text = json.dumps(members, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace") + b"\n"


class Tell(Protocol):
    """Writes an event and returns its seq; None: the event is lost. `clean`: it contains no secret."""

    def __call__(
        self, kind: str, data: Any, parent: Ref | None, *, clean: bool = False
    ) -> Ref | None: ...


class Answer(NamedTuple):
    """The result of an iteration's command. `how` has the values of outcomes."""

    response: Response
    how: str
    took_ns: int
    exit_code: int | None
    # Tokens, cost and counts, as far as the agent reported them.
    usage: Mapping[str, Any]
    # The contents of an agent's stream without its ids; empty: the response is not such a stream.
    conversation: str = ""


def begin_turn(
    tell: Tell, name: str, *, prompt: str | None, context: str | None, level: Level
) -> Ref | None:
    data: dict[str, Any] = {"name": name}
    if context is not None:
        data["context"] = context
    if level != "minimal" and prompt is not None:
        data["input"] = prompt
    return tell(events.TURN_START, data, None)


def begin_call(
    tell: Tell, turn: Ref | None, command: str, *, prompt: str | None, level: Level
) -> Ref | None:
    """Begin the command as a call. At `minimal` only the turn shows that there was a command."""
    if level == "minimal":
        return None
    request = {"stdin": {"text": prompt or ""}}
    return tell(events.CALL, {"boundary": "process", "name": command, "request": request}, turn)


def end_call(tell: Tell, call: Ref | None, said: Answer, *, level: Level) -> None:
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
        # At `full` the response itself shows it.
        ended["usage"] = dict(said.usage) or None
        # A hash is kept, so that equal responses compare equal. Ids and times of a stream differ in each run.
        ended["value"] = said.conversation or response.digest
    tell(events.OUTCOME, ended, call)


def end_turn(
    tell: Tell,
    turn: Ref | None,
    name: str,
    *,
    took_ns: int,
    decision: Decision,
    value: Any,
    level: Level,
) -> None:
    """`decision` has the reason as it is recorded. At `minimal` the name is left out: the start of the turn has it."""
    data: dict[str, Any] = {"turn": turn, "took_ns": took_ns, "decision": decision.word}
    if level != "minimal":
        data["name"] = name
    if decision.word != "error":
        data["how"] = "returned"
        if value is not None:
            data["value"] = value
        if decision.reason is not None:
            data["reason"] = decision.reason
    else:
        failure = decision.reason or "error"
        error = Frozen({"$exception": "IterationFailed", "message": failure})
        data |= {"how": "raised", "error": error}
    tell(events.TURN_END, data, turn)

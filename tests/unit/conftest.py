"""Tapes whose every moment is chosen by the test: real lines of the real format, no waiting."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from playhead import clock
from playhead.llm.anthropic.encode_anthropic import AnthropicEncoder
from playhead.llm.llm_script import ReceivedRequest
from playhead.llm.reply_encoder import IdSource
from playhead.recording.chunks import as_text
from playhead.tape.format import FORMAT_VERSION, close_line
from playhead.tape.manifest import Manifest, write_manifest
from playhead.testing import Reply

RUN = "20261115-071105-k3f9"
STARTED = 1_794_726_665_000_000_000  # 2026-11-15T07:11:05Z
BOOTED = 5_000_000_000
# Above what Linux gives out: nobody's process, so a run that claims to go on is interrupted.
NOBODY = 4_194_999


class Forge:
    """One tape in the making. `now` is the moment of the next event, in seconds from the start."""

    def __init__(
        self,
        home: Path,
        run_id: str = RUN,
        *,
        name: str = "refund-agent",
        pid: int = NOBODY,
        started: int = STARTED,
        **manifest: Any,
    ) -> None:
        self.home = home
        self.path = home / "runs" / run_id
        self.path.mkdir(mode=0o700, parents=True)
        self.pid = pid
        self.now = 0.0
        self.seq = 0
        self._crc = 0
        self._started = started
        self.manifest = Manifest(
            **{
                "run": run_id,
                "name": name,
                "started_at": clock.iso(started),
                "started_ns": started,
                "command": ["python", "refund_agent.py"],
                "cwd": "/srv/shop",
                "project": "/srv/shop",
                "host": clock.host(),
                "pid": pid,
                "birth": clock.process_birth(pid) or "",
                "python": "3.11.7",
                "playhead": "0.1.0",
                **manifest,
            }
        )
        write_manifest(self.path, self.manifest)
        self.event("segment.start", {"format": FORMAT_VERSION, "run": run_id, "generation": 0})
        self.event("run.start", {"run": run_id, "name": name, "resumed": False})

    @property
    def file(self) -> Path:
        return self.path / f"tape-{self.pid}.jsonl"

    def event(
        self,
        kind: str,
        data: Any = None,
        *,
        parent: int = 0,
        cause: int | None = None,
        lane: str = "main",
        at: str = "refund_agent.py:42 respond",
        who: str = "refund-agent",
        why: str | None = None,
        user: bool = False,
    ) -> int:
        moment = round(self.now * 1e9)
        members = {
            "seq": self.seq,
            "kind": kind,
            "wall": self._started + moment,
            "mono": BOOTED + moment,
            "pid": self.pid,
            "thread": 1,
            "lane": lane,
            "at": at,
            "who": who,
            "parent": parent,
            **({} if cause is None else {"cause": cause}),
            **({} if why is None else {"why": why}),
            **({"user": True} if user else {}),
            "data": data,
        }
        body = json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode()[:-1]
        line, self._crc = close_line(body, self._crc)
        with self.file.open("ab") as segment:
            segment.write(line)
        self.seq += 1
        return self.seq - 1

    def call(self, boundary: str, name: str, request: Any = None, **more: Any) -> int:
        """Asked now. `lane`, `parent`, `cause`… go into the line, other names into its data."""
        line = {key: more.pop(key) for key in _OF_THE_LINE if key in more}
        data = {"boundary": boundary, "name": name, "request": request, **more}
        seq = self.event("call", data, **line)
        self._asked = {**getattr(self, "_asked", {}), seq: self.now}
        return seq

    def chunk(self, call: int, raw: bytes, stream: str = "body") -> None:
        data = {"call": call, "stream": stream, **as_text(raw)}
        since = [round((self.now - self._asked[call]) * 1e9)]
        self.event("chunk", {**data, "sizes": [len(raw)], "at_ns": since}, parent=call)

    def head(self, call: int, status: int = 200, **headers: str) -> None:
        pairs = [[name.replace("_", "-"), value] for name, value in headers.items()]
        value = {"status": status, "reason": "", "http_version": "HTTP/1.1", "headers": pairs}
        self.event("chunk", {"call": call, "stream": "head", "value": value}, parent=call)

    def outcome(self, call: int, how: str = "returned", **more: Any) -> None:
        took = round((self.now - self._asked[call]) * 1e9)
        self.event("outcome", {"call": call, "how": how, "took_ns": took, **more}, parent=call)

    def llm(
        self,
        prompt: str,
        reply: Reply,
        *,
        took: float = 1.0,
        cut: int | None = None,
        more: Sequence[Any] = (),
        **line: Any,
    ) -> int:
        """A streamed exchange with Anthropic's API; `cut`: no more than so many events of it; `more`: the messages
        after the prompt.
        """
        wire, mint = AnthropicEncoder(), IdSource(1, prompt)
        body = {
            "model": "claude-sonnet-4-5",
            "max_tokens": 1024,
            "stream": True,
            "system": "You are the refund agent of a shop.",
            "messages": [{"role": "user", "content": prompt}, *more],
        }
        asked = {"method": "POST", "url": "https://api.anthropic.com/v1/messages"}
        asked |= {"headers": {"anthropic-version": "2023-06-01"}, "body": as_text(_json(body))}
        name = "anthropic.messages claude-sonnet-4-5"
        call = self.call("llm", name, asked, api="anthropic.messages", **line)
        begun = self.now
        request = wire.read(
            ReceivedRequest(method="POST", path="", query={}, headers={}, body=b"", json=body)
        )
        if reply.error is not None:
            self.now = begun + took
            self.head(call, reply.error.status, content_type="application/json")
            self.chunk(call, _json(wire.error(reply.error, mint)))
            self.outcome(call, status=reply.error.status)
            return call
        frames = list(wire.frames(request, wire.events(request, reply, mint)))
        self.now = begun + took / 4
        self.head(call, content_type="text/event-stream; charset=utf-8")
        for index, frame in enumerate(frames[:cut]):
            self.now = begun + took / 4 + took * 0.75 * (index + 1) / len(frames)
            self.chunk(call, frame)
        if cut is None:
            self.outcome(call, status=200)
        return call

    def tool(
        self,
        name: str,
        arguments: Any,
        *,
        took: float = 0.1,
        value: Any = None,
        error: Any = None,
        **line: Any,
    ) -> int:
        call = self.call("tool", name, {"arguments": arguments}, **line)
        self.now += took
        if error is not None:
            self.outcome(call, "raised", error=raised(error))
        else:
            self.outcome(call, value=value)
        return call

    def turn(self, name: str, purpose: str | None = None, given: Any = None, **line: Any) -> int:
        seq = self.event("turn.start", {"name": name, "purpose": purpose, "input": given}, **line)
        self._turns = {**getattr(self, "_turns", {}), seq: (name, self.now, [])}
        return seq

    def seam(self, turn: int, name: str, value: Any = None) -> None:
        _, begun, seams = self._turns[turn]
        earlier = seams[-1]["at_ns"] if seams else 0
        at = round((self.now - begun) * 1e9)
        seam = {"name": name, "at_ns": at, "took_ns": at - earlier, "value": value}
        seams.append(seam)
        self.event("seam", {"turn": turn, **seam}, parent=turn)

    def turn_end(self, turn: int, *, error: Any = None) -> None:
        name, begun, seams = self._turns[turn]
        data = {"turn": turn, "name": name, "how": "returned" if error is None else "raised"}
        data |= {"took_ns": round((self.now - begun) * 1e9), "seams": seams}
        data |= {"last_seam": seams[-1]["name"] if seams else None}
        if error is not None:
            data["error"] = raised(error)
        self.event("turn.end", data, parent=turn)

    def end(self, status: str = "ok", error: Any = None) -> Path:
        """The run ends as a recorder ends it; without this it was killed."""
        failure = None if error is None else raised(error)
        took = round(self.now * 1e9)
        self.event("run.end", {"status": status, "error": failure, "took_ns": took})
        self.event("segment.end", {"events": self.seq + 1, "lost": 0})
        members = {"status": status, "duration_s": self.now, "events": self.seq}
        members["ended_at"] = clock.iso(self._started + took)
        if failure is not None:
            members["error"] = {"type": failure["$exception"], "message": failure["message"]}
        old = {name: getattr(self.manifest, name) for name in self.manifest.__slots__}
        self.manifest = Manifest(**{**old, **members})
        write_manifest(self.path, self.manifest)
        return self.path


_OF_THE_LINE = ("parent", "cause", "lane", "at", "who", "why")


def raised(error: Exception, *where: str) -> dict[str, Any]:
    """An exception as the recorder freezes it."""
    return {
        "$exception": f"builtins:{type(error).__name__}",
        "message": str(error),
        "traceback": list(where) or ["refund_agent.py:57 issue_refund"],
    }


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


@pytest.fixture
def forge(tmp_path):
    """Make a tape: `forge()`, `forge("another-id", name="x", tags={"env": "ci"})`."""

    def make(run_id: str = RUN, **more: Any) -> Forge:
        return Forge(tmp_path / "store", run_id, **more)

    return make


@pytest.fixture
def store(tmp_path) -> Path:
    """The folder that `forge` puts its tapes in."""
    return tmp_path / "store"

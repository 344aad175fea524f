"""A deck that records into a run of its own, and one that answers from it in order."""

from collections import defaultdict
from pathlib import Path

import pytest

from playhead.events import Event
from playhead.hooks import registry
from playhead.hooks.order import lane_hooks
from playhead.recording import deck
from playhead.recording.deck import Call, Deck, Taped
from playhead.recording.recorder import Recorder
from playhead.replay.matching.taped import answer_of, load
from playhead.tape.reader import Tape


class Taping:
    """A run being recorded. What is on its tape can be read at any time."""

    def __init__(self, folder: Path, mode=None) -> None:
        folder.mkdir(parents=True)
        self.run = folder
        self.recorder = Recorder(run=folder, run_id=folder.name, who="test")
        self.deck = Deck(self.recorder, mode)
        deck.activate(self.deck)

    def end(self) -> None:
        self.recorder.close()
        deck.deactivate(self.deck)

    def events(self, kind: str | None = None) -> list[Event]:
        tape = Tape(self.run)
        return [tape.whole(one) for one in tape.events() if kind in (None, one.kind)]

    def calls(self, boundary: str | None = None) -> list[Event]:
        return [one for one in self.events("call") if boundary in (None, one.data["boundary"])]

    def call(self, name: str) -> Event:
        (found,) = [one for one in self.calls() if one.data["name"] == name]
        return found

    def outcome(self, call: Event) -> dict:
        (found,) = [one for one in self.events("outcome") if one.data["call"] == call.seq]
        return found.data

    def shown(self, boundary: str = "tool") -> list[tuple]:
        """(name, arguments, value or error's class) of every call, in order."""
        rows = []
        for call in self.calls(boundary):
            ended = self.outcome(call)
            gave = ended.get("value") if ended["how"] == "returned" else ended["how"]
            if ended["how"] == "raised":
                gave = ended["error"]["$exception"]
            rows.append((call.data["name"], call.data["request"].get("arguments"), gave))
        return rows


class InOrder:
    """Answers each call with the next taped one of its name; what is not on the tape goes live."""

    def __init__(self, run: Path, *, live: tuple[str, ...] = ()) -> None:
        self.tape = Tape(run)
        self.live = live
        self.left = defaultdict(list)
        for call in load(self.tape).calls:
            self.left[call.boundary, call.name].append(call)

    def answer(self, call: Call, lane: str) -> Taped | None:
        waiting = self.left[call.boundary, call.name]
        if call.boundary in self.live or not waiting:
            return None
        return answer_of(self.tape, waiting.pop(0), match={})


@pytest.fixture
def hooks(monkeypatch):
    """Names of the boundaries that are hooked: `hooks("tool", "mcp")`."""
    installed = []

    def install(*boundaries: str) -> None:
        rows = tuple(row for row in registry.ROWS if row.boundary in boundaries)
        monkeypatch.setattr(registry, "ROWS", rows)
        lane_hooks.install()
        registry.install()
        installed.append(True)

    yield install
    if installed:
        registry.uninstall()
        lane_hooks.uninstall()


@pytest.fixture
def taping(tmp_path):
    """Record, and read what was recorded."""
    opened = Taping(tmp_path / "store" / "runs" / "recorded")
    yield opened
    opened.end()


@pytest.fixture
def replaying(tmp_path):
    """Serve a recorded run: `with replaying(taping) as again:`."""

    class Replaying:
        def __init__(self, taping: Taping, *, live: tuple[str, ...] = ()) -> None:
            taping.end()
            self.mode = InOrder(taping.run, live=live)

        def __enter__(self) -> Taping:
            self.taping = Taping(tmp_path / "store" / "runs" / "replayed", self.mode)
            return self.taping

        def __exit__(self, *raised: object) -> None:
            self.taping.end()

    return Replaying

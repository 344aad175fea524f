"""One scene, three times: bare, recorded, and replayed with nothing executed."""

import asyncio
import contextlib
import select
import shutil
from multiprocessing import resource_tracker
from pathlib import Path

import pytest
import uvloop

from playhead.errors import Divergence
from playhead.events import Event
from playhead.hooks import registry
from playhead.hooks.process import stage as process_stage
from playhead.hooks.process import stand_in as process_stand_in
from playhead.recording import deck
from playhead.recording.chunks import as_bytes
from playhead.recording.deck import Call, Deck, Taped
from playhead.recording.recorder import Recorder
from playhead.replay.matching.taped import answer_of, load
from playhead.tape.reader import Tape


class Recorded:
    """What a recorded run left on its tape."""

    def __init__(self, run: Path) -> None:
        self.run = run
        tape = Tape(run)
        self.events: list[Event] = [tape.whole(one) for one in tape.events()]

    def of_kind(self, kind: str) -> list[dict]:
        return [event.data for event in self.events if event.kind == kind]

    @property
    def calls(self) -> list[dict]:
        return [data for data in self.of_kind("call") if data["boundary"] == "process"]

    @property
    def call(self) -> dict:
        (only,) = self.calls
        return only

    @property
    def outcomes(self) -> list[dict]:
        return self.of_kind("outcome")

    @property
    def outcome(self) -> dict:
        (only,) = self.outcomes
        return only

    def stream(self, name: str) -> bytes:
        """All that passed through the streams of that name, of all calls."""
        return b"".join(as_bytes(one) for one in self.of_kind("chunk") if one["stream"] == name)

    def marks(self) -> list[tuple[str, bytes]]:
        """What passed, in order, without the head; pieces of one stream joined."""
        marks: list[tuple[str, bytes]] = []
        for one in self.of_kind("chunk"):
            if one["stream"] == "head":
                continue
            if marks and marks[-1][0] == one["stream"] and one["stream"].startswith("std"):
                marks[-1] = (one["stream"], marks[-1][1] + as_bytes(one))
            else:
                marks.append((one["stream"], as_bytes(one)))
        return marks


class FromTape:
    """Answers each call with the first taped one of the same request; fails closed."""

    def __init__(self, run: Path) -> None:
        self.tape = Tape(run)
        self.left = list(load(self.tape).calls)
        self.reported: list[str] = []

    def part_within(
        self, call: Call, lane: str, kind: str, detail: str, advice: str | None
    ) -> None:
        self.reported.append(detail)

    def answer(self, call: Call, lane: str) -> Taped:
        for taped in self.left:
            if (taped.boundary, taped.request) == (call.boundary, call.request):
                self.left.remove(taped)
                return answer_of(self.tape, taped, match={})
        raise Divergence(f"{call.request} is not on the tape; left are {self.left}")


class Stage:
    """Where scenes are played: each time in the same folder, made anew."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        self.trace = self.work / "trace"
        self._runs = folder / "runs"
        self._count = 0

    def bare(self, scene):
        self._clean()
        return scene(self.work)

    def record(self, scene):
        result, run = self._on_deck(scene, None)
        self.recorded = Recorded(run)
        return result

    def replay(self, scene):
        mode = FromTape(self.recorded.run)
        self.reported = mode.reported
        result, run = self._on_deck(scene, mode)
        self.replayed = Recorded(run)
        assert not mode.left, f"never asked for: {[one.request for one in mode.left]}"
        return result

    def replayed_without_children(self, scene):
        """As `replay`, where processes of the recorded run made calls of their own."""
        result, run = self._on_deck(scene, FromTape(self.recorded.run))
        self.replayed = Recorded(run)
        return result

    def all(self, scene) -> Recorded:
        """The same three times; `touch trace` in a command proves that it was run, or was not."""
        told = self.bare(scene)
        ran = self.trace.exists()
        assert self.record(scene) == told
        assert self.trace.exists() == ran
        assert self.replay(scene) == told
        assert not self.trace.exists()
        return self.recorded

    def _clean(self) -> None:
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)

    def _on_deck(self, scene, mode):
        self._clean()
        self._count += 1
        run = self._runs / str(self._count)
        run.mkdir(parents=True)
        recorder = Recorder(run=run, run_id=run.name, who="test")
        made = Deck(recorder, mode)
        deck.activate(made)
        registry.install()
        try:
            return scene(self.work), run
        finally:
            registry.uninstall()
            deck.deactivate(made)
            recorder.close()


@pytest.fixture(autouse=True, scope="session")
def descriptors_of_others():
    """libuv and multiprocessing open some with their first child and keep them: not ours. And one is
    ours, made with the first stand-in.
    """

    async def start() -> None:
        await (await asyncio.create_subprocess_exec("true")).wait()

    loop = uvloop.new_event_loop()
    loop.run_until_complete(start())
    loop.close()
    resource_tracker.ensure_running()
    process_stand_in.chosen()


@pytest.fixture
def stage(tmp_path, monkeypatch):
    rows = tuple(row for row in registry.ROWS if row.boundary == "process")
    monkeypatch.setattr(registry, "ROWS", rows)
    monkeypatch.setattr(registry, "REPLAY_ROWS", ())
    before = open_descriptors()
    yield Stage(tmp_path)
    # A player lets go of its descriptors in a thread of its own, after the program has its answer.
    never = select.poll()
    for _ in range(500):
        if not open_descriptors() - before:
            break
        never.poll(10)
    left = open_descriptors() - before
    assert not left, "descriptors were left open"


def open_descriptors() -> set[tuple[str, str]]:
    """What this process has open, by number and name, but for the stage's two, which stay."""
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the one by which the folder was read
            found.add((entry.name, str(entry.readlink())))
    stays = process_stage.STAGE._woken or ()
    return {one for one in found if int(one[0]) not in stays}


@pytest.fixture
def recorded():
    """What is on the tape of a run: `recorded(path)`."""
    return lambda run: Recorded(Path(run))

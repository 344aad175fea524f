"""Calls made through a real deck onto a real tape, and the same calls against it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.recording import lanes
from playhead.recording.adapter import FunctionAdapter
from playhead.recording.deck import Call, Deck
from playhead.replay.matching.taped import TapedRun, load
from playhead.replay.modes.taped_mode import ReplayMode
from playhead.tape.reader import Tape


def tool(name: str, **arguments: Any) -> Call:
    return Call(boundary="tool", name=name, request={"arguments": arguments})


@pytest.fixture(name="tool")
def make_tool() -> Callable[..., Call]:
    return tool


@pytest.fixture
def taped(tmp_path: Path) -> Callable[[Callable[[Deck], Any]], TapedRun]:
    """Run a function with a recording deck; what it did, read back from the tape."""

    def record(function: Callable[[Deck], Any]) -> TapedRun:
        with playhead.record(name="then", store=tmp_path / "then") as run:
            function(Deck(run.recorder))
        return load(Tape(run.path))

    return record


@pytest.fixture
def replayed(tmp_path: Path):
    """A deck in replay mode over a recording: `with replayed(recording) as (deck, mode, run)`."""
    opened = []

    def begin(recording: TapedRun, **options: Any):
        recorder = playhead.record(name="now", store=tmp_path / "now")
        run = recorder.__enter__()
        opened.append(recorder)
        mode = ReplayMode(recording, run.recorder, **options)
        return Deck(run.recorder, mode), mode, run

    yield begin
    for recorder in reversed(opened):
        recorder.__exit__(None, None, None)


@pytest.fixture
def in_lane():
    def cross(deck: Deck, lane: str, call: Call, value: Any = None) -> Any:
        with lanes.lane(lane):
            return deck.perform(call, FunctionAdapter(lambda: value))

    return cross

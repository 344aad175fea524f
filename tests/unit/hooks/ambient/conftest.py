"""Run a function twice: with its readings taped, and with those readings served."""

import gc
import sys
import threading
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from playhead.hooks.guest import Patches
from playhead.hooks.order import lane_hooks
from playhead.recording import ambient, lanes
from playhead.recording.recorder import Recorder
from playhead.replay.time.taped_source import TapedSource
from playhead.tape.reader import Tape

Hooks = list[tuple[Callable[[ModuleType, Patches], None], ModuleType]]


@contextmanager
def hooked(hooks: Hooks, source: ambient.Source):
    patches = Patches()
    # What other tests left behind must not be deleted here: finalizers read clocks, too, in this very thread.
    gc.disable()
    ambient.begin(source)
    try:
        for hook, module in hooks:
            hook(module, patches)
        with lanes.lane("main"):
            yield
    finally:
        ambient.end(source)
        patches.undo()
        gc.enable()


class OwnReadings(TapedSource):
    """Serves the tape to the test's own thread. Threads that other tests left behind read the real clocks."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        # All of them: `threading.enumerate` does not list threads that `_thread` has started.
        self._others = {*sys._current_frames()} - {threading.get_ident()}

    def read(self, kind, code, live, derive=None, lane=None):
        if threading.get_ident() in self._others:
            return live()
        return super().read(kind, code, live, derive, lane)


class Twice:
    """`then, now = twice(function)`; `served` and `missed` count the readings of the second time."""

    def __init__(self, folder: Path, hooks: Hooks) -> None:
        self.folder = folder
        self.hooks = hooks
        self.served = self.missed = 0

    def __call__(self, function: Callable[[], Any], again: Callable[[], Any] | None = None) -> Any:
        with self.recording():
            then = function()
        with self.serving() as source:
            now = (again or function)()
            self.served, self.missed = source.served, source.missed
        return then, now

    @contextmanager
    def recording(self):
        recorder = Recorder(run=self.folder, run_id="run", who="test")
        with hooked(self.hooks, ambient.TapingSource(recorder)):
            yield
        recorder.close()

    @contextmanager
    def serving(self):
        source = self.tape()
        with hooked(self.hooks, source):
            yield source

    def tape(self) -> TapedSource:
        tape = Tape(self.folder)
        events = [tape.whole(event) for event in tape.events() if event.kind == "ambient"]
        return OwnReadings(events, tape.manifest.started_ns)

    def kinds(self) -> set[str]:
        events = [event for event in Tape(self.folder).events() if event.kind == "ambient"]
        return {row[1] for event in events for row in event.data["readings"]}


@pytest.fixture
def twice_with(tmp_path):
    """`twice_with((hook_time, time), …)`."""
    lane_hooks.install()
    yield lambda *hooks: Twice(tmp_path, list(hooks))
    lane_hooks.uninstall()

"""The application on a terminal without a screen, on runs whose every moment is chosen."""

import os
import time
from contextlib import asynccontextmanager

import pytest

from playhead import clock
from playhead.testing import Reply, ToolCall, Usage
from playhead.views.tui.run_source import RunSource
from playhead.views.tui.tui_app import PlayheadApp

STARTED = 1_794_726_665_000_000_000  # 2026-11-15T07:11:05Z


@pytest.fixture(autouse=True)
def noon(monkeypatch):
    """It is always noon of that day, in UTC: what is seen depends on nothing else."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setattr(clock, "wall_ns", lambda: STARTED + 5 * 3_600_000_000_000)
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def refund(forge):
    tape = forge(tags={"env": "ci"})
    turn = tape.turn("respond", "answer the customer")
    calls = [ToolCall(name="lookup_order", arguments={"order": 4711})]
    reply = Reply(text="I look it up.", tool_calls=calls, usage=Usage(input=1000, output=100))
    asked = tape.llm("Where is my refund?", reply, parent=turn, took=2.0)
    tape.tool("lookup_order", {"order": 4711}, value={"paid": True}, parent=turn, cause=asked)
    tape.seam(turn, "looked up")
    tape.tool("issue_refund", {"order": 4711}, error=ValueError("too late"), parent=turn, took=1.0)
    tape.turn_end(turn, error=ValueError("too late"))
    tape.end("failed", ValueError("too late"))
    return tape


@pytest.fixture
def quiet(forge):
    """Another run, that went well."""
    tape = forge("20261115-081105-aaaa", started=STARTED + 3_600_000_000_000)
    tape.tool("lookup_order", {"order": 4711}, value={"paid": False}, took=0.5)
    tape.end()
    return tape


class ListeningApp(PlayheadApp):
    """Keeps notifications until they are cleared: on the screen they expire after a few seconds of real time."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.notices = []

    def notify(self, message, **options):
        self.notices.append(message)
        super().notify(message, **options)

    def clear_notifications(self):
        self.notices.clear()
        super().clear_notifications()


class Person:
    """Somebody at the terminal: presses keys, reads what is there."""

    def __init__(self, app, pilot):
        self.app, self.pilot = app, pilot

    async def press(self, *keys):
        await self.pilot.press(*keys)
        await self.settled()

    async def settled(self):
        """All that was begun is done, and drawn."""
        await self.app.workers.wait_for_complete()
        await self.pilot.pause()
        await self.app.workers.wait_for_complete()
        await self.pilot.pause()

    async def sees(self, words):
        """Waits until it is there."""
        for _ in range(1000):
            if words in self.screen():
                return
            await self.pilot.pause(0.02)
        pytest.fail(f"{words!r} is not on the screen:\n{self.screen()}")

    def rows(self):
        strips = self.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip) for strip in strips]

    def screen(self):
        return "\n".join(row.rstrip() for row in self.rows())


@pytest.fixture
def at_terminal(store):
    @asynccontextmanager
    async def sit(run=None, *, size=(80, 24), now_ns=clock.mono_ns):
        app = ListeningApp(RunSource(store), run, now_ns=now_ns)
        async with app.run_test(size=size) as pilot:
            person = Person(app, pilot)
            await person.settled()
            yield person
            if folder := os.environ.get("PLAYHEAD_SCREENSHOTS"):
                name = os.environ["PYTEST_CURRENT_TEST"].rpartition("::")[2].split(" ")[0]
                app.save_screenshot(f"{name}.svg", folder)

    return sit

"""One browser for all tests, a library of real tapes, and a server that shows them.

A browser that cannot be started is a failure, never a skip: what these tests promise would be unproven.
"""

import http.client
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

import playhead

HERE = Path(__file__).parent
SCREENSHOTS = HERE.parents[1] / "build" / "screenshots"
CHROMIUM = os.environ.get("PLAYHEAD_CHROMIUM", "/usr/bin/chromium")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# What a stranger may put on a tape to see whether it runs.
NASTY = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>"
    "</script><svg onload=alert(3)> \x1b[31mred\x1b[0m [x](javascript:alert(4)) ![p](http://evil.invalid/p.png)"
)


# Playwright's event loop counts as running in its thread for as long as the browser lives: asyncio.run()
# of every other test would fail there. So the browser, and the tests that use it, have one of their own.
THREAD = ThreadPoolExecutor(1, "browser")
# A busy machine is slow, not wrong.
expect.set_options(timeout=30_000)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem) -> bool:
    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    THREAD.submit(pyfuncitem.obj, **given).result()
    return True


# Not for the whole session: the replays that other tests make wait for children of their process.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    if not Path(CHROMIUM).exists():
        pytest.fail(
            f"There is no {CHROMIUM}. `apt-get install chromium` brings it; PLAYHEAD_CHROMIUM names another."
        )
    playwright = THREAD.submit(sync_playwright().start).result()
    launch = partial(playwright.chromium.launch, executable_path=CHROMIUM, args=FLAGS)
    browser = THREAD.submit(launch).result()
    yield browser
    THREAD.submit(browser.close).result()
    THREAD.submit(playwright.stop).result()


class Tab:
    """A page that keeps what should never be: dialogs, errors, requests that leave."""

    def __init__(self, page: Page, home: str) -> None:
        self.page = page
        self.home = home
        self.dialogs: list[str] = []
        self.errors: list[str] = []
        self.strangers: list[str] = []
        page.on("dialog", self._dialog)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._console)
        page.on("request", self._request)

    def _dialog(self, dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def _console(self, message) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def _request(self, request) -> None:
        if not request.url.startswith((self.home, "data:")):
            self.strangers.append(request.url)

    def open(self, path: str) -> Page:
        self.page.goto(self.home + path)
        self.page.wait_for_selector("main[data-ready=true]")
        return self.page

    def shot(self, name: str) -> None:
        """Take a picture for the documentation, which must not name the folders of this machine."""
        path = SCREENSHOTS / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        self.page.evaluate(
            """() => document.querySelectorAll(".run-command code").forEach((one) => {
              one.textContent = one.textContent.replace(/\\/\\S*\\//g, "");
            })"""
        )
        self.page.screenshot(path=str(path))

    def check(self) -> None:
        assert self.dialogs == []
        assert self.errors == []
        assert self.strangers == []


@pytest.fixture
def tab(chromium, request) -> Iterator:
    """`tab(home)`: a new page; `theme="dark"`, `size=(390, 844)`. Looked at when the test is over."""
    opened = []

    def make(home: str, *, theme: str = "light", size: tuple[int, int] = (1440, 900)) -> Tab:
        context = chromium.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=theme
        )
        context.set_default_timeout(30_000)
        made = Tab(context.new_page(), home)
        opened.append((context, made))
        return made

    yield make
    for context, made in opened:
        THREAD.submit(context.close).result()
        made.check()


@pytest.fixture(scope="session")
def library(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("library")


@pytest.fixture(scope="session")
def team(library) -> str:
    """The id of a run with two lanes, tools, HTTP, a process, a picture, and a failure at its end."""
    argv = [sys.executable, str(HERE / "research_team.py"), str(library)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return done.stdout.split()[0]


@pytest.fixture(scope="session")
def stranger(library) -> str:
    """The id of a run that is made of what could break a page."""
    with playhead.record(name=NASTY, store=library, tags={"env": NASTY}) as run:
        run.emit(NASTY, {NASTY: NASTY, "list": [NASTY]})
        with run.turn(NASTY, purpose=NASTY) as turn:
            turn.seam(NASTY, NASTY)
            playhead.tool(name="echo")(lambda text: text)(text=NASTY)
    return run.id


class Server:
    def __init__(self, home: Path) -> None:
        argv = [
            sys.executable,
            "-m",
            "playhead",
            "serve",
            "--port",
            "0",
            "--no-token",
            "--json",
            "--store",
            str(home),
        ]
        self._process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        told = json.loads(self._process.stdout.readline())
        self.url = told["url"].rstrip("/")
        # Nobody reads the rest, and a full pipe would hold the server up.
        threading.Thread(target=self._process.stdout.read, daemon=True).start()

    def ask(self, path: str) -> dict:
        host = self.url.removeprefix("http://")
        connection = http.client.HTTPConnection(host, timeout=20)
        connection.request("GET", path)
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return answer

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(20)
        self._process.stdout.close()


@pytest.fixture(scope="module")
def server(library, team, stranger) -> Iterator[Server]:
    made = Server(library)
    yield made
    made.stop()


@pytest.fixture(scope="session")
def exported(library, team, stranger, tmp_path_factory) -> Path:
    """The same two runs as pages of one file: `team.html`, `stranger.html`."""
    folder = tmp_path_factory.mktemp("exported")
    for name, run in (("team", team), ("stranger", stranger)):
        argv = [sys.executable, "-m", "playhead", "export", run, "--store", str(library)]
        subprocess.run([*argv, "--html", str(folder / f"{name}.html")], check=True)
    return folder

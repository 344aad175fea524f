"""Pictures of every page for the documentation, light, dark and on a phone: `make pictures` keeps them."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import HERE, SCREENSHOTS, Server
from tests.browser.porter import SERVER

from playhead.tape.manifest import read_manifest
from playhead.views.tui.run_source import RunSource
from playhead.views.tui.tui_app import PlayheadApp

pytestmark = pytest.mark.browser

IMAGES = HERE.parents[1] / "docs" / "images"
PAGES = ("list", "run", "compare", "stats", "files")
LOOKS = {
    "light": {"theme": "light", "size": (1280, 800)},
    "dark": {"theme": "dark", "size": (1280, 800)},
    "phone": {"theme": "light", "size": (390, 844)},
}
GIT = {"GIT_CONFIG_GLOBAL": os.devnull} | {
    f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


@pytest.fixture(scope="module")
def gallery(tmp_path_factory) -> dict:
    """A store with a failed research team and two runs of the porter, one of which leaves out a step."""
    top = tmp_path_factory.mktemp("gallery")
    home = top / "home"
    home.mkdir()
    # In a folder of its own: pictures must not name the folders of this machine.
    team = shutil.copy(HERE / "research_team.py", top)
    started = [subprocess.Popen([sys.executable, team, str(home)], cwd=top)]
    for name, left_out in (("porter", ""), ("porter-quick", "3")):
        project = top / name
        for folder in ("src", "config"):
            (project / folder).mkdir(parents=True)
        (project / "src" / "server.py").write_text(SERVER)
        (project / "notes.txt").write_text("remember the milk\n")
        subprocess.run(
            ["sh", "-c", "git init -q . && git add -A && git commit -qm one"],
            cwd=project,
            env={**os.environ, **GIT},
            check=True,
        )
        argv = ["record", "--quiet", "--store", str(home), "--name", name, "--", sys.executable]
        started.append(
            subprocess.Popen(
                [sys.executable, "-m", "playhead", *argv, str(HERE / "porter.py")],
                cwd=project,
                env={**os.environ, **GIT, "PORTER_LEAVES_OUT": left_out},
            )
        )
    assert [one.wait(100) for one in started] == [0, 0, 0]
    found = {read_manifest(one).name: one.name for one in (home / "runs").iterdir()}
    return {**found, "home": home}


@pytest.fixture(scope="module")
def site(gallery):
    made = Server(gallery["home"])
    yield made
    made.stop()


@pytest.mark.parametrize("look", LOOKS)
def test_every_page_is_pictured_and_fits_its_screen(tab, site, gallery, look):
    shown = tab(site.url, **LOOKS[look])
    team, left, right = gallery["research-team"], gallery["porter"], gallery["porter-quick"]
    addresses = {
        "list": "/",
        "run": f"/run/{team}",
        "compare": f"/compare?a={left}&b={right}",
        "stats": "/stats?by=tool",
        "files": f"/run/{left}",
    }
    assert tuple(addresses) == PAGES
    for name, address in addresses.items():
        page = shown.open(address)
        if name == "list":
            expect(page.locator("tr[data-id]")).to_have_count(3)
        if name == "run" and look != "phone":
            page.locator(".row", has_text="The cache is never hit").click()
            expect(page.locator(".detail h2")).to_contain_text("claude-sonnet")
        if name == "compare":
            page.get_by_role("button", name="First difference").click()
        if name == "stats":
            expect(page.locator(".stats-table tbody tr")).to_have_count(3)
        if name == "files":
            page.get_by_role("tab", name=re.compile("^Files")).click()
            page.keyboard.press("Home")
            page.keyboard.press("ArrowRight")
            expect(page.locator(".file-head h2")).to_have_text("src/server.py")
        assert page.evaluate("document.documentElement.scrollWidth") <= LOOKS[look]["size"][0]
        shown.shot(f"docs/{name}-{look}")
        if name == "run" and look == "dark":
            page.get_by_role("tab", name="Why & context").click()
            expect(page.locator(".causes li")).not_to_have_count(0)
            shown.shot("docs/viewer-why")


def test_the_terminal_ui_is_pictured_and_fits_its_screen(chromium, gallery):
    async def drawn() -> str:
        app = PlayheadApp(
            RunSource(gallery["home"]), gallery["home"] / "runs" / gallery["research-team"]
        )
        async with app.run_test(size=(100, 30)) as pilot:
            for _ in range(2):
                await app.workers.wait_for_complete()
                await pilot.pause()
            await pilot.press("f")
            await pilot.pause()
            return app.export_screenshot(title="playhead ui")

    # The loop of the browser runs in this thread.
    with ThreadPoolExecutor(1) as thread:
        picture = thread.submit(asyncio.run, drawn()).result(60)
    assert "KeyError" in picture
    page = chromium.new_page(viewport={"width": 1000, "height": 640})
    page.set_content(f"<body style='margin:0'>{picture}</body>")
    page.locator("svg").screenshot(path=str(SCREENSHOTS / "docs" / "terminal-ui.png"))
    page.close()


def test_the_documentation_has_every_picture_and_shows_it():
    text = (HERE.parents[1] / "docs" / "viewer.md").read_text("utf-8")
    for name in (f"{page}-{look}.png" for page in PAGES for look in LOOKS):
        assert (IMAGES / name).stat().st_size > 10_000, name
        assert f"images/{name}" in text


def test_every_picture_of_the_documentation_is_used():
    pages = "".join(page.read_text("utf-8") for page in Path(IMAGES.parent).glob("*.md"))
    assert [one.name for one in IMAGES.iterdir() if f"images/{one.name}" not in pages] == []

"""A long run is shown before all of it has been read."""

import pytest
from playwright.sync_api import expect

import playhead

pytestmark = pytest.mark.browser


@pytest.fixture
def long_run(library) -> str:
    """More events than the first screen asks for, and the failure at their end."""
    look_up = playhead.tool(name="look_up")(lambda order: {"order": order})
    started = []

    def work() -> None:
        with playhead.record(name="all-night", store=library) as run, run.turn("night shift"):
            started.append(run.id)
            look_up(order="first of all")
            for number in range(4200):
                run.emit("step:done", {"number": number})
            look_up(order="last of all")
            raise LookupError("no more orders")

    with pytest.raises(LookupError):
        work()
    return started[0]


def let_go(page, held) -> None:
    """What the page asks for after its first screen."""
    while not held:
        page.wait_for_timeout(10)
    held[0].continue_()


def test_the_first_screen_does_not_wait_for_the_rest_of_the_run(tab, server, long_run):
    shown = tab(server.url)
    held = []
    shown.page.route(f"**/api/recordings/{long_run}", lambda route: held.append(route))  # noqa: PLW0108  it marks its handlers
    page = shown.open(f"/run/{long_run}")
    expect(page.locator(".reading")).to_contain_text("first 4,000 of 4,2")
    expect(page.locator(".status")).to_have_text("failed")
    expect(page.locator(".figures-bar")).to_contain_text("…")
    expect(page.locator(".row", has_text="first of all")).to_be_visible()
    expect(page.locator(".row", has_text="night shift")).not_to_contain_text("never ended")
    assert page.locator(".trouble").count() == 0
    shown.shot("beginning")
    let_go(page, held)
    page.wait_for_selector("main[data-whole=true]")
    expect(page.locator(".reading")).to_be_hidden()
    expect(page.locator(".trouble")).to_contain_text("no more orders")
    expect(page.locator(".detail h2")).to_contain_text("night shift")
    page.keyboard.press("End")
    expect(page.locator(".row", has_text="last of all")).to_be_visible()


def test_who_has_begun_to_look_around_stays_there(tab, server, long_run):
    shown = tab(server.url)
    held = []
    shown.page.route(f"**/api/recordings/{long_run}", lambda route: held.append(route))  # noqa: PLW0108  it marks its handlers
    page = shown.open(f"/run/{long_run}")
    page.locator(".row", has_text="first of all").click()
    expect(page.locator(".detail h2")).to_contain_text("look_up")
    let_go(page, held)
    page.wait_for_selector("main[data-whole=true]")
    expect(page.locator(".row.selected")).to_contain_text("first of all")


def test_a_rest_that_cannot_be_had_is_said(tab, server, long_run):
    shown = tab(server.url)
    shown.page.route(
        f"**/api/recordings/{long_run}",
        lambda route: route.fulfill(status=409, json={"error": {"reason": "Torn.", "next": None}}),
    )
    page = shown.open(f"/run/{long_run}")
    expect(page.locator(".reading")).to_contain_text("Only the beginning can be shown: Torn.")
    expect(page.locator(".row", has_text="first of all")).to_be_visible()
    shown.errors.clear()  # the browser's own line about the 409

"""A run that is watched while it happens."""

import pytest
from playwright.sync_api import expect

import playhead

pytestmark = pytest.mark.browser


def test_a_running_agent_appears_and_grows_as_one_watches(tab, server, library):
    shown = tab(server.url)
    listing = shown.open("/")
    look_up = playhead.tool(name="look_up")(lambda order: {"order": order, "state": "sent"})
    with playhead.record(name="watched-agent", store=library) as run:
        found = listing.locator("tr[data-id]", has_text="watched-agent")
        expect(found).to_contain_text("running")
        found.click()
        listing.wait_for_selector("main.run[data-ready=true]")
        page = listing
        expect(page.locator(".status")).to_have_text("running")
        with run.turn("answer", purpose="find the parcel") as turn:
            expect(page.locator(".row.kind-turn")).to_contain_text("running")
            look_up(order="A-17")
            expect(page.locator(".row", has_text="look_up")).to_contain_text("sent")
            shown.shot("live")
            turn.seam("order found")
            expect(page.locator(".row.kind-seam")).to_contain_text("order found")
            run.emit("mail:sent", {"to": "customer"})
            expect(page.locator(".row", has_text="mail:sent")).to_be_visible()
    expect(page.locator(".status")).to_have_text("ok")
    expect(page.locator(".row.kind-turn")).not_to_contain_text("running")

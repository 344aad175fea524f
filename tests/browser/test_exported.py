"""The viewer in one file, and tapes of strangers, in a real browser."""

import pytest
from playwright.sync_api import expect

from playhead.views.web.page_blocks import Packer

pytestmark = pytest.mark.browser


def test_an_exported_run_is_the_same_viewer_without_a_server(tab, exported):
    shown = tab(f"file://{exported}", theme="dark")
    page = shown.open("/team.html")
    expect(page.locator(".trouble")).to_contain_text("KeyError")
    page.locator(".row", has_text="fetch_metrics").first.click()
    expect(page.locator(".detail-body")).to_contain_text("releases")
    page.get_by_label("Search in this run").fill("metrics store is busy")
    expect(page.locator(".row").first).to_contain_text("metrics")
    shown.shot("exported")
    assert "#/" in page.url
    again = tab(f"file://{exported}").open(f"/team.html{page.url[page.url.index('#') :]}")
    expect(again.locator(".detail h2")).to_contain_text("fetch_metrics")


def test_a_prompt_of_an_exported_run_is_whole_again(tab, exported):
    page = tab(f"file://{exported}").open("/team.html")
    page.locator(".row", has_text="The cache is never hit").first.click()
    page.get_by_role("tab", name="Raw").click()
    expect(page.locator(".raw")).to_contain_text("You find out why a service became slow.")
    expect(page.locator(".raw")).to_contain_text("WARN retry 6/6")


def test_the_page_unpacks_what_python_packed(tab, server):
    packer = Packer()
    values = [
        {"$t": 3, "x": "é" * 500},
        {"$q": [1, None, True]},
        ["a" * 500 + "b", "a" * 500 + "c"],
        "😀" * 450,
        "😀" * 449 + "x" * 20,
    ]
    packed = [packer.pack(value) for value in values]
    assert any(isinstance(one, list) for one in packer.texts)
    page = tab(server.url).open("/batch")
    script = """async ([kept, values]) => {
      const { unpack } = await import("/static/packed.js");
      const texts = unpack.texts(kept);
      return values.map((one) => unpack(one, texts));
    }"""
    assert page.evaluate(script, [packer.texts, packed]) == values


@pytest.mark.parametrize("place", ["server", "file"])
def test_what_a_stranger_put_on_a_tape_is_text_and_nothing_else(
    tab, server, exported, stranger, place
):
    shown = tab(server.url if place == "server" else f"file://{exported}")
    page = shown.open(f"/run/{stranger}" if place == "server" else "/stranger.html")
    expect(page.locator("h1")).to_contain_text("<script>alert(1)</script>")
    expect(page.locator("h1")).to_contain_text("␛[31mred␛[0m")
    for index in range(page.locator(".row").count()):
        page.locator(".row").nth(index).click()
        for tab_name in ("Rendered", "Why & context", "Raw"):
            page.get_by_role("tab", name=tab_name).click()
            expect(page.locator(".detail")).to_contain_text("<img src=x onerror=alert(2)>")
    assert page.locator("#app img, #app svg[onload], #app script").count() == 0
    assert page.locator("a[href^='javascript']").count() == 0
    shown.shot(f"stranger-{place}")


def test_a_list_with_a_stranger_in_it_is_text_too(tab, server, stranger):
    page = tab(server.url).open("/")
    expect(page.locator(f"tr[data-id='{stranger}']")).to_contain_text("<script>alert(1)</script>")
    assert page.locator("main img").count() == 0

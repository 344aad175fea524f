"""An answer that arrives late never replaces what the page shows by then. Each test holds one answer back."""

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import expect
from tests.browser.late import Held

import playhead

pytestmark = pytest.mark.browser


def test_the_list_shows_the_runs_of_the_filter_that_was_chosen_last(tab, server):
    shown = tab(server.url)
    page = shown.open("/?q=nothing-has-this-name")
    expect(page.locator(".total")).to_have_text("0 runs")
    field = page.get_by_label("Search prompts, answers, tools, errors")
    failed = Held(page, r"/api/recordings\?.*q=first").during(lambda: field.fill("first"))
    field.fill("second")
    expect(page).to_have_url(re.compile("q=second"))
    expect(page.locator(".total")).to_have_text("0 runs")
    failed.release(status=500)
    expect(page.locator(".total")).to_have_text("0 runs")
    sums = Held(page, r"/api/stats\?.*q=research").during(lambda: field.fill("research"))
    with page.expect_response(re.compile(r"/api/stats\?.*q=second")):
        field.fill("second")
    expect(page.locator(".spark", has_text="runs").locator("strong")).to_have_text("0")
    sums.release()
    expect(page.locator(".spark", has_text="runs").locator("strong")).to_have_text("0")
    shown.errors.clear()  # the answer that this test made a failure


def test_more_runs_are_shown_when_a_run_starts_meanwhile(tab, server, library):
    page = tab(server.url).page
    older: list[dict] = []

    def listed(route) -> None:
        told = route.fetch().json()
        runs = [*told["runs"], *older]
        route.fulfill(json={**told, "runs": runs, "next": None if older else "the-next-page"})

    page.route(re.compile(r"/api/recordings\?"), listed)
    page.goto(server.url)
    held = Held(page, r"/api/recordings\?.*cursor=").during(page.locator("button.more").click)
    page.evaluate(
        "window.heard = new Promise(done => { new EventSource('/api/live').onmessage = done })"
    )
    with playhead.record(name="meanwhile", store=library):
        pass
    page.evaluate("heard.then(() => new Promise(done => setTimeout(done, 400)))")
    older.append(
        {**server.ask("/api/recordings?limit=1")["runs"][0], "id": "r1", "name": "an older run"}
    )
    with page.expect_request(re.compile(r"/api/recordings\?(?!.*cursor)")):
        held.routes.pop().fulfill(json={"runs": older, "next": None, "total": 9, "indexing": None})
        expect(page.locator("tr[data-id]", has_text="an older run")).to_have_count(1)
    expect(page.locator("tr[data-id]", has_text="meanwhile")).to_have_count(1)


def test_a_list_that_was_left_changes_neither_the_address_nor_listens(tab, server, team):
    page = tab(server.url).page
    held = Held(page, r"/api/recordings\?")
    held.during(lambda: page.goto(server.url + "/"))
    page.evaluate(f"history.pushState(null, '', '/run/{team}?view=steps')")
    page.evaluate("window.dispatchEvent(new PopStateEvent('popstate'))")
    page.wait_for_selector("main.run[data-whole=true]")
    address = page.url
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    held.release()
    assert asked == []
    assert page.url == address


def test_a_run_that_was_left_changes_neither_the_title_nor_the_address(tab, server, team):
    page = tab(server.url).open("/")
    ref = server.ask(f"/api/recordings/{team}")["model"]["refs"][-1]
    held = Held(page, rf"/api/recordings/{team}")
    held.during(
        lambda: page.evaluate(
            f"""history.pushState(null, '', '/run/{team}/{ref}?view=files');
            window.dispatchEvent(new PopStateEvent('popstate'))"""
        )
    )
    page.get_by_role("link", name="Stats").click()
    page.wait_for_selector("main.page[data-ready=true]")
    address = page.url
    held.release()
    assert page.url == address
    assert "research" not in page.title()


def test_the_step_that_an_address_names_last_is_the_one_that_is_shown(tab, server, team):
    page = tab(server.url).page
    refs = [one for one in server.ask(f"/api/recordings/{team}")["model"]["refs"] if one]
    held = Held(page, rf"/api/recordings/{team}")
    held.during(lambda: page.goto(f"{server.url}/run/{team}/{refs[1]}"))
    page.evaluate(f"history.pushState(null, '', '/run/{team}/{refs[3]}')")
    page.evaluate("window.dispatchEvent(new PopStateEvent('popstate'))")
    held.release()
    page.wait_for_selector("main.run[data-whole=true]")
    assert page.url.endswith(quote(refs[3], safe=""))


def test_a_comment_that_is_being_written_survives_the_answer_to_the_one_before(tab, server, team):
    page = tab(server.url).page
    said: list[dict] = []

    def serve(route) -> None:
        if route.request.method == "POST":
            text = route.request.post_data_json["text"]
            said.append({"id": text, "by": "me", "at": "2026-11-18T00:00:00Z", "text": text})
        told = {"comments": said, "me": "me", "may_comment": True, "may_remove_all": False}
        route.fulfill(json=told)

    page.route(re.compile("/comments$"), serve)
    page.goto(f"{server.url}/run/{team}")
    page.locator(".comments summary").click()
    field = page.get_by_role("textbox", name="Comment")
    field.fill("one")
    page.unroute(re.compile("/comments$"))
    post = Held(page, "/comments$").during(
        page.get_by_role("button", name="Comment", exact=True).click
    )
    field.fill("two, half writ")
    serve(post.routes[0])
    expect(page.locator(".comment p")).to_have_text(["one"])
    expect(field).to_have_value("two, half writ")

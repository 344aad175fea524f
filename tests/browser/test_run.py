"""The page of a run, in a real browser."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def row(page, text):
    return page.locator(".row", has_text=text).first


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_failed_run_says_why_and_shows_who_asked_for_what(tab, server, team, theme):
    shown = tab(server.url, theme=theme)
    page = shown.open(f"/run/{team}")
    expect(page.locator(".status")).to_have_text("failed")
    expect(page.locator(".trouble")).to_contain_text("KeyError")
    expect(page.locator(".trouble")).to_contain_text("report written")
    levels = {
        text: row(page, text).get_attribute("aria-level")
        for text in ("research", "search_logs", "printf")
    }
    assert levels == {"research": "1", "search_logs": "3", "printf": "4"}
    expect(page.locator(".detail h2")).to_contain_text("write")
    shown.shot(f"run-{theme}")


def test_an_answer_is_rendered_and_its_picture_shown(tab, server, team):
    shown = tab(server.url)
    page = shown.open(f"/run/{team}")
    row(page, "What we found").click()
    body = page.locator(".detail-body")
    expect(body.locator("strong", has_text="38 %")).to_be_visible()
    expect(body.locator("table td", has_text="640 ms")).to_be_visible()
    expect(body.locator("pre code")).to_contain_text("never the same twice")
    expect(body.locator("pre code .s-comment").first).to_be_visible()
    picture = body.locator("img.picture")
    picture.scroll_into_view_if_needed()
    assert picture.evaluate("node => node.complete && node.naturalWidth") == 48
    shown.shot("answer")


def test_causes_lead_from_an_answer_through_the_tool_to_the_question(tab, server, team):
    page = tab(server.url).open(f"/run/{team}")
    row(page, "The cache is never hit").click()
    page.get_by_role("tab", name="Why & context").click()
    # The pane shows the step before until the answer of the server is there: `expect` waits for it.
    expect(page.locator(".causes strong")).to_have_text(
        ["claude-sonnet-5-5", "search_logs", "claude-sonnet-5-5", "research"]
    )
    page.locator(".causes button", has_text="search_logs").click()
    expect(page.locator(".row.selected")).to_contain_text("search_logs")
    expect(page.locator(".ws")).to_contain_text(["lane main/1"])


def test_a_prompt_is_compared_with_the_one_before(tab, server, team):
    page = tab(server.url).open(f"/run/{team}")
    row(page, "The cache is never hit").click()
    page.get_by_role("tab", name="Prompt diff").click()
    expect(page.locator("ins", has_text="search_logs").first).to_be_visible()
    expect(page.locator(".diff-line", has_text="What do the logs say?").first).not_to_have_class(
        "gone"
    )


def test_a_stream_is_shown_piece_by_piece(tab, server, team):
    page = tab(server.url).open(f"/run/{team}")
    row(page, "What we found").click()
    page.get_by_role("tab", name="Stream").click()
    expect(page.locator(".pieces td", has_text="message_start").first).to_be_visible()
    assert page.locator(".strip i").count() == page.locator(".pieces tbody tr").count() > 10


def test_search_finds_what_only_stands_in_an_answer(tab, server, team):
    page = tab(server.url).open(f"/run/{team}")
    page.keyboard.press("/")
    page.keyboard.type("metrics store is busy")
    expect(page.locator(".row")).not_to_have_count(0)
    expect(page.locator(".row").first).to_contain_text("metrics")
    page.keyboard.press("Escape")
    expect(page.locator(".row", has_text="research").first).to_be_visible()


def test_keys_go_to_the_failure_and_through_the_tree(tab, server, team):
    page = tab(server.url).open(f"/run/{team}")
    page.keyboard.press("f")
    expect(page.locator(".row.selected")).to_contain_text("HTTP 502")
    assert "/run/" in page.url
    page.locator(".tree").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".row.selected")).to_contain_text("fetch_metrics")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".row.selected")).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()


def test_the_tape_plays_to_its_end_and_counts_as_it_goes(tab, server, team):
    page = tab(server.url).open(f"/run/{team}")
    page.keyboard.press("Home")
    expect(page.locator(".so-far")).to_contain_text("0 tokens")
    page.get_by_label("Speed").select_option("0.1")
    page.get_by_role("button", name="Play (space)").click()
    expect(page.locator(".row.later").last).to_be_visible()
    expect(page.get_by_role("button", name="Pause (space)")).to_be_visible()
    page.get_by_label("Speed").select_option("64")
    expect(page.locator(".so-far")).to_contain_text("16,062 tokens")
    expect(page.get_by_role("button", name="Play (space)")).to_be_visible()
    expect(page.locator(".row.later")).to_have_count(0)


def test_lanes_of_a_thread_pool_are_drawn_as_one_and_none_of_their_bars_covers_another(tab, server):
    page = tab(server.url).open("/")
    packed = page.evaluate(
        """async () => {
          const { pack } = await import("/static/lanes.js");
          const lanes = ["main", ...Array.from({ length: 9 }, (_, at) => `main/${at + 1}`), "main/9/1", "other/1"];
          const rows = lanes.map((_, at) => at);
          const model = {
            lanes, lane: rows, order: Int32Array.from(rows), at: rows.map((at) => at * 10),
            groupOf: () => "llm", end: (row) => row * 10 + 25,
          };
          return pack(model).map(({ name, rows }) => [name, rows.map((line) => [...line])]);
        }"""
    )
    assert packed == [
        ["main", [[0]]],
        ["main/1…9", [[1, 4, 7, 10], [2, 5, 8], [3, 6, 9]]],
        ["other/1", [[11]]],
    ]


def test_output_is_shown_in_the_colours_of_a_terminal(tab, server):
    page = tab(server.url).open("/")
    drawn = page.evaluate(
        """async () => {
          const { styled } = await import("/static/ansi.js");
          const text = "a\x1b[1;31mred\x1b[0m \x1b[38;5;208morange\x1b[48;2;0;0;250m\x1b[39mback\x1b[2K\x1b]0;t\x07";
          const { nodes, style } = styled(text);
          const next = styled("<b>next", style);
          return [...nodes, ...next.nodes].map((one) => [one.className ?? "", one.textContent ?? one]);
        }"""
    )
    assert drawn == [
        ["", "a"],
        ["ansi-1 ansi-bold", "red"],
        ["", " "],
        ["ansi-3", "orange"],
        ["ansi-on-4", "back"],
        ["ansi-on-4", "<b>next"],
    ]


def test_a_long_text_in_the_data_of_an_event_is_shown_with_its_lines(tab, server):
    page = tab(server.url).open("/")
    before, after = page.evaluate(
        """async () => {
          const { jsonTree } = await import("/static/jsontree.js");
          const prompt = "You are careful.\\nSay \\"no\\" in C:\\\\new.\\n" + "word ".repeat(1000) + "end";
          const tree = jsonTree({ prompt });
          const seen = () => tree.querySelector(".json-text").textContent;
          const before = seen();
          tree.querySelector("button").click();
          return [before, seen()];
        }"""
    )
    assert before.startswith('"You are careful.\nSay \\"no\\" in C:\\\\new.\nword word')
    assert before.endswith("…")
    assert after.endswith('word end"')


def test_a_step_has_an_address_of_its_own(tab, server, team):
    page = tab(server.url).open(f"/run/{team}")
    row(page, "fetch_metrics").click()
    address = page.url
    again = tab(server.url)
    opened = again.open(address.removeprefix(server.url))
    expect(opened.locator(".row.selected")).to_contain_text("fetch_metrics")
    expect(opened.locator(".detail h2")).to_contain_text("fetch_metrics")


def test_a_call_is_copied_as_curl_as_python_and_as_a_fixture(tab, server, team):
    shown = tab(server.url)
    page = shown.open(f"/run/{team}")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    row(page, "What do the logs say?").click()
    copies = {}
    for name in ("curl", "Python", "fixture"):
        page.locator(".actions").get_by_role("button", name=name, exact=True).click()
        expect(page.locator(".toast")).to_have_text(f"Copied as {name}.")
        copies[name] = page.evaluate("navigator.clipboard.readText()")
    assert copies["curl"].startswith("curl -X POST http://127.0.0.1")
    compile(copies["Python"], "copied", "exec")
    assert '"search_logs"' in copies["fixture"]


def test_a_phone_shows_the_list_and_then_the_step(tab, server, team):
    shown = tab(server.url, size=(390, 844))
    page = shown.open(f"/run/{team}")
    expect(page.locator(".tree")).to_be_visible()
    expect(page.locator(".detail")).to_be_hidden()
    shown.shot("phone-run")
    row(page, "search_logs").click()
    expect(page.locator(".detail h2")).to_contain_text("search_logs")
    shown.shot("phone-step")
    page.get_by_role("button", name="Back to the list").click()
    expect(page.locator(".detail")).to_be_hidden()
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 390


def test_everything_that_can_be_pressed_has_a_name(tab, server, team):
    page = tab(server.url).open(f"/run/{team}")
    row(page, "search_logs").click()
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, a, input, select, [role=tree], [role=tab]")]
          .filter(node => !(node.getAttribute("aria-label") || node.textContent.trim()
                            || node.labels?.length || node.title))
          .map(node => node.outerHTML)"""
    )
    assert nameless == []


def test_steps_are_addressed_by_number_narrowed_and_given_the_room(tab, server, team):
    shown = tab(server.url)
    page = shown.open(f"/run/{team}/3")
    expect(page.locator(".row.selected .number")).to_have_text("#3")
    row(page, "fetch_metrics").click()
    number = row(page, "fetch_metrics").locator(".number").text_content()
    assert page.url.endswith(f"/run/{team}/{number.removeprefix('#')}")
    page.get_by_label("Lane, model or tool").select_option("tool:search_logs")
    expect(row(page, "search_logs")).to_be_visible()
    expect(row(page, "fetch_metrics")).to_have_count(0)
    page.get_by_label("Lane, model or tool").select_option("")
    page.get_by_role("button", name="Failed 2").click()
    expect(row(page, "HTTP 502")).to_be_visible()
    expect(row(page, "search_logs")).to_have_count(0)
    page.get_by_role("button", name="Hide head and timeline").click()
    expect(page.locator(".timeline")).to_be_hidden()
    page.keyboard.press("h")
    expect(page.locator(".timeline")).to_be_visible()

"""Pages of one file that need no script, as `diff --html` and `batch --html` write them."""

import re

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import NASTY

from playhead.story.comparison.compare import Comparison, Figure, Side, Step
from playhead.story.verdicts import Results, Verdict, cases_of
from playhead.views.html_comparison import comparison_page
from playhead.views.html_page import results_page

pytestmark = pytest.mark.browser

WIDE, PHONE = (1440, 900), (390, 844)
LOOKS = [("light", WIDE), ("dark", WIDE), ("light", PHONE), ("dark", PHONE)]
FOUND = "\n".join(
    f"{number:>3}  order A-{1000 + number}  shipped  DHL  arrives on Tuesday"
    for number in range(30)
)


def side(number, boundary, name, asked, answered, *, rung=None):
    return Side(
        number=number,
        boundary=boundary,
        name=name,
        asked=asked,
        answered=answered,
        took_ns=12_000_000,
        cost_usd=0.002,
        rung=rung,
    )


@pytest.fixture
def compared(tmp_path) -> str:
    """The address of a comparison in which every kind of step occurs."""
    question = "Where is order A-1009?\nAnswer in one sentence."
    later = FOUND.replace("A-1009  shipped", "A-1009  lost   ")
    steps = (
        Step(
            kind="same",
            left=side(1, "llm", "claude-sonnet-5-5", question, "→ lookup_order"),
            right=side(1, "llm", "claude-sonnet-5-5", question, "→ lookup_order", rung="exact"),
            similarity=1.0,
        ),
        Step(
            kind="changed",
            left=side(2, "tool", "lookup_order", '{"order": "A-1009"}', FOUND),
            right=side(2, "tool", "lookup_order", '{"order": "A-1009"}', later, rung="live"),
            similarity=0.97,
        ),
        Step(kind="added", left=None, right=side(3, "process", NASTY, NASTY, NASTY)),
        Step(
            kind="removed", left=side(3, "no-such-boundary", "notify", "mail", "sent"), right=None
        ),
        Step(
            kind="changed",
            left=side(4, "llm", "claude-sonnet-5-5", question, "It arrives on Tuesday."),
            right=side(4, "llm", "claude-opus-5", question, "It is lost; we send another."),
            similarity=0.31,
        ),
    )
    comparison = Comparison(
        left="20261115-071105-k3f9",
        right="20261115-081200-m2x7",
        figures=(
            Figure(name="duration_s", left=4.2, right=6.4),
            Figure(name="cost_usd", left=0.0142, right=0.0312),
            Figure(name="llm_calls", left=2, right=2),
            Figure(name="tool_calls", left=2, right=1),
        ),
        steps=steps,
        result_similarity=0.31,
    )
    file = tmp_path / "diff.html"
    file.write_text(comparison_page(comparison), encoding="utf-8")
    return file.as_uri()


@pytest.fixture
def judged(tmp_path) -> str:
    """The address of the results of a batch in which every kind of verdict occurs."""
    figures = {"tokens": 12_400, "steps": 14, "cost_usd": 0.031, "similarity": 0.93}
    names = ["refund.tape.jsonl", "triage.tape.jsonl", "invoice.tape.jsonl", "old.tape.jsonl"]
    verdicts = [
        Verdict(
            tape=names[0], name="refund", outcome="passed", took_s=1.5, figures=figures, answer="a"
        ),
        Verdict(
            tape=names[1],
            name="triage",
            outcome="passed",
            took_s=2.5,
            figures=figures,
            answer="a",
        ),
        Verdict(
            tape=names[1],
            name="triage",
            outcome="diverged",
            round=2,
            replay="20261115-081200-m2x7",
            why=("llm call 3 has no taped answer: messages[3].content differs", NASTY),
            said=f"Traceback (most recent call last):\n{NASTY}",
            took_s=2.1,
            figures=figures,
        ),
        Verdict(tape=names[2], name=NASTY, outcome="broken", why=("cost 0.4 > 0.1",), took_s=0.2),
        Verdict(tape=names[3], name="old", outcome="unusable", why=("recorded at level minimal",)),
    ]
    results = Results(
        cases=cases_of(verdicts, names),
        started_at="2026-11-15T07:11:05Z",
        took_s=6.3,
        host="build-7",
        not_run=1,
    )
    file = tmp_path / "batch.html"
    file.write_text(results_page(results), encoding="utf-8")
    return file.as_uri()


def fits(page) -> bool:
    """Nothing has to be scrolled sideways but what scrolls by itself."""
    return page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.parametrize(("theme", "size"), LOOKS)
def test_a_comparison_looks_like_the_viewer_and_fits(tab, compared, theme, size):
    shown = tab(compared, theme=theme, size=size)
    shown.page.goto(compared)
    page = shown.page
    expect(page.get_by_role("heading", level=1)).to_have_text("Trajectories differ")
    back = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert back == {"light": "rgb(255, 255, 255)", "dark": "rgb(19, 21, 24)"}[theme]
    expect(page.locator("del.diff-line").first).to_contain_text("A-1009  shipped")
    expect(page.locator("ins.diff-line").first).to_contain_text("A-1009  lost")
    assert fits(page)
    shown.shot(f"diff-{theme}-{size[0]}")


@pytest.mark.parametrize(("theme", "size"), LOOKS)
def test_the_results_of_a_batch_look_like_the_viewer_and_fit(tab, judged, theme, size):
    shown = tab(judged, theme=theme, size=size)
    shown.page.goto(judged)
    page = shown.page
    expect(page.locator(".outcomes")).to_contain_text("1 diverged")
    expect(page.locator(".divergence")).to_have_count(3)
    expect(page.locator("tbody tr")).to_have_count(4)
    expect(page.locator("tbody tr").nth(1)).to_contain_text("flaky")
    assert fits(page)
    shown.shot(f"results-{theme}-{size[0]}")


def test_a_comparison_is_read_with_the_keyboard_alone(tab, compared):
    shown = tab(compared)
    shown.page.goto(compared)
    page = shown.page
    same, added = page.locator(".step-same"), page.locator(".step-added details")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="To the content")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(same).to_be_hidden()
    page.keyboard.press("Space")
    expect(same).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#step-2$"))
    added.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(added).to_have_attribute("open", "")
    folded = page.locator(".diff details summary").first
    folded.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".diff-line", has_text="A-1001").first).to_be_visible()

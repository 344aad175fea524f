"""Runs, compare, replay reports and batch results, in a real browser."""

import json
import os
import subprocess
import sys

import pytest
from playwright.sync_api import expect

from playhead.story.verdicts import Results, Verdict, cases_of

pytestmark = pytest.mark.browser

PROGRAM = """
import subprocess, sys
word = open(sys.argv[1]).read()
print(subprocess.run(["printf", word], capture_output=True, text=True).stdout)
"""


def playhead(library, *words, folder=None):
    argv = [sys.executable, "-m", "playhead", *words]
    environ = {**os.environ, "PLAYHEAD_HOME": str(library)}
    done = subprocess.run(
        argv, cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode in {0, 3}, done.stderr
    return done


@pytest.fixture(scope="module")
def replay(library, tmp_path_factory) -> tuple[str, str]:
    """The ids of a run and of a replay that parted from it."""
    folder = tmp_path_factory.mktemp("echo")
    (folder / "echo.py").write_text(PROGRAM)
    (folder / "word.txt").write_text("Paris")
    playhead(
        library,
        "record",
        "--name",
        "echo",
        "--",
        sys.executable,
        "echo.py",
        "word.txt",
        folder=folder,
    )
    (folder / "word.txt").write_text("Lyon")
    playhead(library, "replay", "last", folder=folder)
    told = playhead(library, "list", "--all", "--replays", "--json", folder=folder)
    runs = [one for one in json.loads(told.stdout) if one["name"] == "echo"]
    replayed = next(one for one in runs if one["replay_of"])
    return replayed["replay_of"], replayed["id"]


def test_runs_are_found_filtered_and_opened_by_keys(tab, server, team):
    shown = tab(server.url)
    page = shown.open("/")
    expect(page.locator("tr[data-id]", has_text="research-team")).to_contain_text("KeyError")
    shown.shot("runs")
    page.keyboard.press("/")
    page.keyboard.type("cache")
    expect(page.locator("tr[data-id]")).to_have_count(1)
    expect(page.locator("mark").first).to_be_visible()
    page.get_by_label("Status").select_option("ok")
    expect(page.locator(".nothing")).to_be_visible()
    page.get_by_label("Status").select_option("failed")
    expect(page.locator("tr[data-id]")).to_have_count(1)
    page.locator("h1").click()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector("main.run[data-ready=true]")
    assert f"/run/{team}" in page.url
    expect(page.get_by_label("Search in this run")).to_have_value("cache")
    expect(page.locator(".row").first).to_contain_text("logs")


def test_replays_are_listed_on_demand_and_with_their_verdict(tab, server, replay):
    original, replayed = replay
    shown = tab(server.url)
    page = shown.open("/")
    expect(page.locator(f"tr[data-id='{original}']")).to_be_visible()
    expect(page.locator(f"tr[data-id='{replayed}']")).to_have_count(0)
    page.get_by_label("replays").check()
    row = page.locator(f"tr[data-id='{replayed}'] .status")
    expect(row).to_have_text("diverged")
    expect(row).to_have_class("status status-failed")
    page = shown.open(f"/run/{replayed}")
    expect(page.locator(".run-title .status")).to_have_text("diverged")


def test_the_figures_count_the_runs_of_the_list(tab, server, replay):
    page = tab(server.url).open("/")
    runs = page.locator(".spark strong").first
    for checked in (False, True):
        page.get_by_label("replays").set_checked(checked)
        expect(page.locator(f"tr[data-id='{replay[1]}']")).to_have_count(int(checked))
        listed = page.locator("tr[data-id]").count()
        expect(page.locator(".page-head")).to_contain_text(f"{listed} runs")
        expect(runs).to_have_text(str(listed))


def test_two_runs_stand_side_by_side(tab, server, replay):
    shown = tab(server.url)
    for address in (f"/compare/{replay[0]}/{replay[1]}", f"/compare?a={replay[0]}&b={replay[1]}"):
        page = shown.open(address)
        expect(page.locator("h1")).to_have_text("Trajectories differ")
        page.get_by_role("button", name="First difference").click()
        expect(page.locator(".aligned details[open]")).to_contain_text("Paris")


def test_two_runs_to_compare_are_found_by_their_names_and_get_an_address(tab, server, team, replay):
    page = tab(server.url).open("/compare")
    left, right = (
        page.get_by_role("group", name="Left run"),
        page.get_by_role("group", name="Right run"),
    )
    left.get_by_label("Search for the left run").fill("research")
    expect(left.get_by_role("radio")).to_have_count(1)
    right.get_by_label("Search for the right run").fill(replay[0])
    expect(right.get_by_role("radio", checked=True)).to_have_value(replay[0])
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("h1")).to_have_text("Trajectories differ")
    assert page.url == f"{server.url}/compare?a={team}&b={replay[0]}"
    page.go_back()
    expect(page.locator("h1")).to_have_text("Compare two runs")


def test_the_stats_are_grouped_by_what_is_chosen(tab, server, team):
    page = tab(server.url).open("/stats?by=tool")
    expect(page.locator(".stats-table tbody")).to_contain_text("fetch_metrics")
    page.get_by_label("Group by").select_option("model")
    expect(page.locator(".stats-table tbody")).to_contain_text("claude-sonnet-5-5")
    assert page.url == f"{server.url}/stats?by=model"
    page.get_by_label("Since").select_option("1d")
    expect(page.locator(".stats-table tbody tr").first).to_be_visible()
    assert page.url.endswith("since=1d")


def test_a_replay_says_where_it_parted_and_what_it_asked_instead(tab, server, replay):
    shown = tab(server.url)
    page = shown.open(f"/report/{replay[1]}")
    expect(page.locator("h1")).to_contain_text("Diverged")
    first = page.locator(".divergence").first
    expect(first.locator("td", has_text="Paris")).to_be_visible()
    expect(first.locator("td", has_text="Lyon")).to_be_visible()
    expect(page.locator(".coverage")).to_contain_text("process")
    shown.shot("report")


def test_a_replay_in_one_file_has_its_report_and_what_it_printed(tab, library, replay, tmp_path):
    playhead(library, "export", replay[1], "--html", str(tmp_path / "replay.html"))
    page = tab(f"file://{tmp_path}").open("/replay.html")
    page.get_by_role("button", name="report").click()
    expect(page.get_by_role("dialog")).to_contain_text("Diverged")
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Terminal").click()
    expect(page.get_by_role("log")).to_contain_text("playhead")


def test_results_of_a_batch_are_read_from_a_file(tab, server, team, tmp_path):
    verdicts = [
        Verdict(tape=team, name="refund", outcome="passed", took_s=1.5, figures={"tokens": 1200}),
        Verdict(tape="b.tape.jsonl", name="<b>triage</b>", outcome="diverged", why=("step 3",)),
    ]
    results = Results(
        cases=cases_of(verdicts, [team, "b.tape.jsonl"]),
        started_at="2026-11-15T07:11:05Z",
        took_s=2.0,
    )
    file = tmp_path / "results.json"
    file.write_text(json.dumps(results.as_json()))
    shown = tab(server.url)
    page = shown.open("/batch")
    page.get_by_label("Results of a batch").set_input_files(file)
    expect(page.locator(".outcomes")).to_contain_text("1 diverged")
    expect(page.locator(".divergence")).to_contain_text("<b>triage</b>")
    expect(page.get_by_role("link", name="refund")).to_be_visible()
    shown.shot("batch")


def test_an_address_that_means_nothing_says_so(tab, server):
    shown = tab(server.url)
    shown.page.goto(f"{server.url}/run/20200101-000000-none")
    expect(shown.page.get_by_role("alert")).to_contain_text("cannot be shown")
    shown.errors.clear()  # the browser itself tells the console of the 404


def test_a_search_that_is_not_complete_says_so_and_fills_up(tab, server, team):
    shown = tab(server.url)
    # The page asks again and again; what it is told changes when the test has seen it, not with time.
    behind = {"done": 12000, "of": 100000}

    def answer(route) -> None:
        told = route.fetch().json()
        if behind and "q=" in route.request.url:
            told |= {"runs": [], "total": 0, "indexing": dict(behind)}
        route.fulfill(json=told)

    shown.page.route("**/api/recordings?*", answer)
    page = shown.open("/")
    expect(page.locator(".indexing")).to_be_hidden()
    page.keyboard.press("/")
    page.keyboard.insert_text("cache")
    expect(page.locator(".indexing")).to_contain_text("12,000 of 100,000")
    expect(page.locator(".nothing")).to_contain_text("No run matches so far")
    shown.shot("indexing")
    behind["done"] = 60000
    expect(page.locator(".indexing")).to_contain_text("60,000 of 100,000")
    behind.clear()
    expect(page.locator(f"tr[data-id='{team}']")).to_be_visible()
    expect(page.locator(".indexing")).to_be_hidden()

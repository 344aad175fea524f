"""Runs are found, marked and let go of over HTTP as they are by the library."""

import os
import threading

import pytest

from playhead.library.indexing import Reader
from playhead.tape.manifest import read_manifest
from playhead.testing import Reply, Usage
from playhead.views.web.api.listing import parse_moment

HOUR = 3_600_000_000_000
STARTED = 1_794_726_665_000_000_000  # 2026-11-15T07:11:05Z
RUN = "/api/recordings/20261115-071105-k3f9"


@pytest.fixture
def three(forge):
    cheap = forge("cheap", name="night-job", tags={"env": "ci"}, started=STARTED)
    cheap.llm("hello", Reply(text="rate limit reached", usage=Usage(input=10, output=1)))
    cheap.end()
    dear = forge("dear", name="refund", started=STARTED + HOUR)
    dear.llm("hi", Reply(text="fine", usage=Usage(input=100_000, output=1000)))
    dear.tool("lookup", {"n": 1}, error=ValueError("no"))
    dear.end("failed", ValueError("no"))
    forge("killed", name="refund", started=STARTED + 2 * HOUR, project="/srv/other")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["killed", "dear", "cheap"]),
        ("status=failed", ["dear"]),
        ("status=failed&status=interrupted", ["killed", "dear"]),
        ("tag=env", ["cheap"]),
        ("tag=env=ci", ["cheap"]),
        ("tag=env=prod", []),
        ("name=ref*", ["killed", "dear"]),
        ("project=/srv/other", ["killed"]),
        ("model=claude-sonnet-4-5", ["dear", "cheap"]),
        ("tool=lookup", ["dear"]),
        ("q=rate+limit", ["cheap"]),
        ("q=rate+limit&in=tool", []),
        ("min_cost=0.01", ["dear"]),
        ("max_cost=0.01", ["cheap"]),
        ("since=2026-11-15T08:00:00Z", ["killed", "dear"]),
        ("until=2026-11-15T08:00:00Z", ["cheap"]),
        ("sort=started", ["cheap", "dear", "killed"]),
        ("sort=-cost&status=ok&status=failed", ["dear", "cheap"]),
        ("sort=name&limit=1", ["cheap"]),
    ],
)
def test_a_list_is_filtered_searched_and_sorted(site, three, query, found):
    said = site.ask(f"/api/recordings?{query}")
    assert said.status == 200, said.raw
    assert [run["id"] for run in said.json["runs"]] == found


def test_pages_follow_each_other_without_gap_or_double(site, three):
    first = site.ask("/api/recordings?limit=2").json
    assert (len(first["runs"]), first["total"]) == (2, 3)
    second = site.ask(f"/api/recordings?limit=2&cursor={first['next']}").json
    assert [run["id"] for run in second["runs"]] == ["cheap"]
    assert second["next"] is None
    assert site.ask("/api/recordings?cursor=nonsense").status == 400


def test_a_row_says_what_the_run_was_and_spent(site, three):
    row = site.ask("/api/recordings?q=lookup").json["runs"][0]
    assert (row["name"], row["status"], row["llm_calls"], row["tool_calls"]) == (
        *("refund", "failed"),
        *(1, 1),
    )
    assert (row["models"], row["tools"]) == (["claude-sonnet-4-5"], ["lookup"])
    assert row["failure"] == "ValueError: no"
    assert row["cost_usd"] > 0.3
    assert site.ask("/api/recordings/dear").json["summary"]["tokens"] == row["tokens"] == 101_000


def test_an_empty_store_has_no_runs(site):
    nothing = {"runs": [], "total": 0, "has_more": False, "next": None}
    nothing |= {"indexing": None, "remote": None}
    assert site.ask("/api/recordings").json == nothing
    assert site.ask("/api/stats").json["rows"] == []


def test_sums_are_told_by_day_and_by_model(site, three):
    (day,) = site.ask("/api/stats").json["rows"]
    assert (day["key"], day["runs"], day["failures"]) == ("2026-11-15", 3, 1)
    (model,) = site.ask("/api/stats?by=model&status=ok").json["rows"]
    assert (model["key"], model["calls"]) == ("claude-sonnet-4-5", 1)


def test_what_is_said_about_a_run_stays_with_it(site, refund):
    said = {"tags": {"team": "shop"}, "note": "look at call 3", "keep": True, "name": "seen"}
    row = site.ask(RUN, "PATCH", body=said).json
    assert (row["tags"], row["note"], row["kept"], row["name"]) == (
        *({"team": "shop"}, "look at call 3"),
        *(True, "seen"),
    )
    assert read_manifest(refund.path).tags == {"team": "shop"}
    assert site.ask(RUN).json["summary"]["note"] == "look at call 3"
    assert [run["id"] for run in site.ask("/api/recordings?tag=team").json["runs"]] == [
        refund.path.name
    ]


def test_a_run_is_deleted_and_then_not_there(site, refund):
    assert site.ask(RUN, "DELETE").json == {"id": refund.path.name}
    assert not refund.path.exists()
    assert site.ask(RUN).status == 404
    assert site.ask(RUN, "DELETE").status == 404
    assert site.ask("/api/recordings").json["total"] == 0


def test_a_run_that_is_kept_or_goes_on_is_not_deleted(site, refund, forge):
    live = forge("live", pid=os.getpid())
    site.ask(RUN, "PATCH", body={"keep": True})
    for run in (refund, live):
        said = site.ask(f"/api/recordings/{run.path.name}", "DELETE")
        assert said.status == 409
        assert "not deleted" in said.reason
        assert run.path.exists()


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-15", 1_794_700_800_000_000_000),
        ("2026-11-15T07:11:05Z", STARTED),
        ("2026-11-15T08:11:05+01:00", STARTED),
        ("2h", 10 * HOUR - 2 * HOUR),
        ("9999999d", 0),
    ],
)
def test_a_moment_is_a_day_a_time_or_how_long_ago(text, moment):
    assert parse_moment(text, 10 * HOUR) == moment


def test_a_list_that_is_not_complete_says_so_and_when_to_ask_again(site, three, monkeypatch):
    let_go, real = threading.Event(), Reader.read

    def reading(self, run_id, manifest=None):
        assert let_go.wait(60)
        return real(self, run_id, manifest)

    monkeypatch.setattr(Reader, "read", reading)
    try:
        said = site.ask("/api/recordings?q=refund")
        assert (said.status, said.headers["retry-after"]) == (200, "1")
        assert said.json["runs"] == []
        assert said.json["indexing"]["of"] in (0, 3)
        assert site.ask("/api/stats").json["indexing"] is not None
    finally:
        let_go.set()
    while (said := site.ask("/api/recordings?q=refund")).json["indexing"] is not None:
        assert said.status == 200
    assert "retry-after" not in said.headers
    assert said.json["runs"] != []

"""What is asked of one run comes back whole, and what is not there is said to be not there."""

import json
import threading

import pytest

from playhead.story import tell
from playhead.tape.blobs import push
from playhead.tape.sealed.seal import seal
from playhead.views.web.api import story_cache as stories

RUN = "/api/recordings/20261115-071105-k3f9"


def test_a_run_is_its_summary_and_its_model(site, refund):
    said = site.ask(RUN)
    assert said.status == 200
    assert said.headers["content-type"] == "application/json"
    summary, model = said.json["summary"], said.json["model"]
    assert (summary["id"], summary["status"], summary["calls"]) == (refund.path.name, "failed", 3)
    assert summary["failure"] == "ValueError: too late"
    assert model["totals"]["llm_calls"] == 1
    assert model["failure"]["message"] == "too late"
    assert len(model["refs"]) == len(model["columns"]["kind"])


def test_a_run_that_has_not_changed_is_not_sent_again(site, refund):
    tag = site.ask(RUN).headers["etag"]
    again = site.ask(RUN, If_None_Match=tag)
    assert (again.status, again.raw) == (304, b"")


def test_a_run_that_has_grown_is_sent_anew(site, forge):
    tape = forge()
    tag = site.ask(RUN).headers["etag"]
    tape.tool("lookup", {"n": 1}, value=2)
    again = site.ask(RUN, If_None_Match=tag)
    assert again.status == 200
    assert again.json["summary"]["calls"] == 1
    assert again.headers["etag"] != tag


def test_a_call_comes_with_request_answer_and_chunks(site, refund):
    first = site.ask(f"{RUN}/calls/1").json
    assert first["boundary"] == "llm"
    assert first["llm"][0]["response"]["parts"][0]["text"] == "I look it up."
    assert len(first["chunks"]) > 1
    assert site.ask(f"{RUN}/calls/2").json["value"] == {"paid": True}
    assert site.ask(f"{RUN}/calls/3").json["failure"]["message"] == "too late"


@pytest.mark.parametrize(
    "path", ["/calls/4", "/calls/0", "/calls/x", "/items/1:99", "/blobs/" + "0" * 64, "/report"]
)
def test_what_a_run_does_not_have_is_not_found_and_the_reason_said(site, refund, path):
    said = site.ask(RUN + path)
    assert said.status == 404
    assert said.reason


def test_any_item_is_found_by_its_name(site, refund):
    refs = site.ask(RUN).json["model"]["refs"]
    kinds = [site.ask(f"{RUN}/items/{ref}").json["type"] for ref in refs if "~" not in ref]
    assert set(kinds) >= {"turn", "call"}


def test_items_are_found_by_what_is_in_them(site, refund):
    refs = site.ask(f"{RUN}/find?q=issue_refund").json["refs"]
    assert refs
    assert site.ask(f"{RUN}/find?q=nowhere-to-be-found").json == {"refs": []}
    assert site.ask(f"{RUN}/find").status == 400


def test_a_payload_is_handed_over_as_bytes_that_no_browser_runs(site, refund):
    payload = b"<script>alert(1)</script>" * 10
    digest = push(refund.path, payload)
    said = site.ask(f"{RUN}/blobs/{digest}")
    assert said.raw == payload
    assert said.headers["content-type"] == "application/octet-stream"
    assert said.headers["content-disposition"].startswith("attachment")
    assert said.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in said.headers["content-security-policy"]
    shown = site.ask(f"{RUN}/blobs/{digest}?type=image/png")
    assert shown.headers["content-type"] == "image/png"
    assert site.ask(f"{RUN}/blobs/{digest}?type=text/html").status == 400


def test_two_runs_are_compared(site, forge, refund):
    other = forge("other")
    other.tool("lookup_order", {"order": 4711}, value={"paid": False})
    other.end()
    said = site.ask(f"/api/diff?a={refund.path.name}&b=other").json
    assert (said["left"], said["right"], said["same"]) == (refund.path.name, "other", False)
    assert {step["kind"] for step in said["steps"]} >= {"removed", "changed"}
    assert site.ask(f"/api/diff?a={refund.path.name}&b=nobody").status == 404


def pages_of(site, query):
    after, pages = "", []
    while after is not None:
        said = site.ask(f"{RUN}/events?{query}" + (f"&after={after}" if after else "")).json
        pages.append(said["events"])
        after = said["next"]
    return pages


def test_pages_of_events_are_the_tape_line_by_line(site, refund):
    lines = [json.loads(line) for line in refund.file.read_bytes().splitlines()]
    pages = pages_of(site, "limit=7")
    assert [event for page in pages for event in page] == lines
    assert {len(page) for page in pages[:-1]} == {7}


def test_a_page_can_be_asked_for_again(site, refund):
    following = site.ask(f"{RUN}/events?limit=7").json["next"]
    asked = [site.ask(f"{RUN}/events?limit=7&after={following}").json for _ in range(2)]
    assert asked[0] == asked[1]


def test_a_page_can_begin_after_so_many_events(site, refund):
    assert site.ask(f"{RUN}/events?after=3&limit=1").json["events"][0]["seq"] == 3
    assert site.ask(f"{RUN}/events?after=100000").json == {"events": [], "next": None}


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("kind=turn.*", {"turn.start", "turn.end"}),
        ("boundary=tool", {"call", "outcome"}),
        ("boundary=llm", {"call", "chunk", "outcome"}),
        ("kind=call&kind=seam", {"call", "seam"}),
        ("lane=nobody", set()),
        ("seq=0..1", {"segment.start", "run.start"}),
    ],
)
def test_events_are_chosen_by_kind_boundary_lane_and_seq(site, refund, query, kinds):
    whole = site.ask(f"{RUN}/events?{query}").json["events"]
    assert {event["kind"] for event in whole} == kinds
    assert [event for page in pages_of(site, f"{query}&limit=2") for event in page] == whole


def test_a_sealed_run_is_read_like_any_other(site, refund):
    before = site.ask(f"{RUN}/events?limit=1000").json["events"]
    seal(refund.path)
    assert site.ask(f"{RUN}/events?limit=1000").json["events"] == before
    assert site.ask(f"{RUN}/calls/2").json["value"] == {"paid": True}


def test_a_number_larger_than_any_machine_word_is_told(site, forge):
    tape = forge()
    tape.tool("count", {"text": "\N{SNOWMAN}"}, value=2**70)
    tape.end()
    assert site.ask(f"{RUN}/calls/1").json["value"] == 2**70


@pytest.fixture
def long_run(forge):
    tape = forge()
    for number in range(20):
        tape.tool("count", {"n": number}, value=number)
    tape.end()
    return tape


@pytest.fixture
def held(monkeypatch):
    """No run is told whole before `held.set()`."""
    let_go = threading.Event()

    def told(tape, **options):
        if options["first"] is None:
            assert let_go.wait(60)
        return tell(tape, **options)

    monkeypatch.setattr(stories, "tell", told)
    yield let_go
    let_go.set()


def test_the_beginning_is_there_while_the_whole_run_is_being_told(site, long_run, held):
    said = []
    waiting = threading.Thread(target=lambda: said.append(site.ask(RUN)))
    waiting.start()
    begun = site.ask(f"{RUN}?first=10").json
    assert begun["partial"] == {"events": 10, "of": 44}
    assert begun["summary"]["calls"] == 4
    ended = begun["model"]["refs"][0]
    assert site.ask(f"{RUN}/items/{ended}").json["value"] == 0
    assert said == []
    held.set()
    waiting.join(60)
    assert said[0].json["partial"] is None
    assert said[0].json["summary"]["calls"] == 20
    # Known whole, it is given whole.
    assert site.ask(f"{RUN}?first=10").json == said[0].json


def test_a_step_that_the_beginning_leaves_open_is_waited_for(site, long_run, held):
    begun = site.ask(f"{RUN}?first=9").json
    open_one = begun["model"]["refs"][-1]
    held.set()
    assert site.ask(f"{RUN}/items/{open_one}").json["value"] == 3


def test_a_run_with_no_more_events_than_asked_for_is_told_whole(site, long_run, held):
    said = site.ask(f"{RUN}?first=44")
    assert said.json["partial"] is None
    assert said.headers["etag"]
    assert site.ask(RUN).json == said.json

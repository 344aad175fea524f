"""The application as a whole: what it describes is what it does."""

import json

import pytest

from playhead.views.web.api.operations import OPERATIONS

RUN = "/api/recordings/20261115-071105-k3f9"


def test_the_server_says_that_it_is_there(site):
    assert site.ask("/healthz").json == {"status": "ok"}


def test_the_document_names_every_operation_with_what_may_come_back(site):
    document = site.ask("/api/openapi.json").json
    assert document["openapi"] == "3.1.0"
    described = {
        (method.upper(), path) for path, methods in document["paths"].items() for method in methods
    }
    assert described == {(one.method, one.path) for one in OPERATIONS}
    for methods in document["paths"].values():
        for one in methods.values():
            assert all(answer["description"] for answer in one["responses"].values())


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.id)
def test_every_operation_that_is_described_exists(site, refund, operation):
    if operation.id == "live":
        return
    ref = site.ask(RUN).json["model"]["refs"][0]
    named = {"n": 1, "ref": ref, "hash": "0" * 64, "version": "0" * 64, "comment": "c1"}
    path = operation.path.format(id=refund.path.name, **named)
    query = {"diff": f"?a={refund.path.name}&b={refund.path.name}", "find": "?q=refund"}
    body = {"change": {"note": "seen"}, "comment": {"text": "seen"}}.get(operation.id)
    said = site.ask(path + query.get(operation.id, ""), operation.method, body=body)
    refused = {"replay": 403, "blob": 404, "version": 404, "report": 404, "uncomment": 404}
    assert said.status == refused.get(operation.id, 200), said.raw
    assert said.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/api/recordings?limit=0", "limit is '0'; expected from 1 to 500"),
        ("/api/recordings?limit=many", "expected a whole number"),
        ("/api/recordings?limit=5&limit=6", "given twice"),
        ("/api/recordings?stauts=failed", "no parameter 'stauts'"),
        ("/api/recordings?status=bad", "expected one of running, ok, failed, interrupted"),
        ("/api/recordings?min_cost=nan", "expected a number"),
        ("/api/recordings?sort=size", "expected one of"),
        ("/api/diff?a=x", "b is missing"),
        (f"{RUN}/events?seq=9..x", "is not a range of events"),
        (f"{RUN}/events?after=1:2,x", "after"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_is_wrong(site, refund, path, reason):
    said = site.ask(path)
    assert said.status == 400
    assert reason in said.reason


def test_a_parameter_that_is_nearly_right_is_guessed(site):
    said = site.ask("/api/recordings?stauts=failed")
    assert said.json["error"]["next"] == "Did you mean status?"


@pytest.mark.parametrize(
    ("raw", "media", "status"),
    [
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b"{}", "application/json", 400),
        (b'{"keep": "yes"}', "application/json", 400),
        (b'{"tags": {"a": 1}}', "application/json", 400),
        (b'{"unknown": 1}', "application/json", 400),
        (b"[" * 50_000, "application/json", 400),
        (b'{"keep": true}', "text/plain", 415),
    ],
)
def test_a_body_that_does_not_fit_is_refused(site, refund, raw, media, status):
    head = f"PATCH {RUN} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    head += f"Content-Type: {media}\r\nContent-Length: {len(raw)}\r\n\r\n"
    said = site.raw(head.encode() + raw)
    assert int(said.split()[1]) == status
    assert json.loads(said.partition(b"\r\n\r\n")[2])["error"]["reason"]


@pytest.mark.parametrize("path", ["/nowhere", "/api/nothing", "/api/recordings/a/b/c"])
def test_what_is_not_there_is_not_found_in_json(site, path):
    said = site.ask(path)
    assert said.status == 404
    assert said.reason


def test_a_method_that_a_path_does_not_have_is_said(site, refund):
    said = site.ask("/api/recordings", "DELETE")
    assert said.status == 405
    assert "GET" in said.headers["allow"]


@pytest.mark.parametrize("path", ["/", "/run/x", "/run/x/123:4", "/compare/a/b", "/report/x"])
def test_every_address_of_the_viewer_is_its_page(site, path):
    said = site.ask(path)
    assert said.status == 200
    assert said.headers["content-type"].startswith("text/html")
    assert said.raw == site.ask("/").raw
    assert site.ask(path, If_None_Match=said.headers["etag"]).status == 304


def test_the_files_of_the_page_are_there_and_no_others(site):
    assert site.ask("/static/nothing.js").status == 404
    assert site.ask("/static/index.html").status == 200


def test_a_tape_that_cannot_be_read_is_a_problem_of_that_tape(site, forge, refund):
    (refund.path / "manifest.json").write_text('{"run": "x", "format": 9999}')
    said = site.ask(RUN)
    assert said.status == 409
    assert "format 9999" in said.reason

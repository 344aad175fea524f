"""Tapes of strangers: whatever is on them, the answer is an answer, and data."""

import json

import pytest

from playhead.recording.chunks import as_text

RUN = "/api/recordings/20261115-071105-k3f9"
PATHS = (RUN, f"{RUN}/events", f"{RUN}/calls/1", f"{RUN}/find?q=x", "/api/recordings?q=x")


def nested(depth):
    value = "x"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("depth", [90, 400, 900])
def test_what_is_nested_deeply_is_told_or_said_to_be_too_deep(site, forge, depth):
    tape = forge()
    tape.tool("dig", {"deep": nested(depth)}, value=nested(depth))
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": [{"type": "x", "y": nested(depth)}]}],
    }
    asked = {
        "method": "POST",
        "url": "https://x/v1/messages",
        "body": as_text(json.dumps(body).encode()),
    }
    tape.call("llm", "anthropic.messages m", asked, api="anthropic.messages")
    tape.end()
    for path in (*PATHS, f"{RUN}/calls/2", f"/api/diff?a={tape.path.name}&b={tape.path.name}"):
        said = site.ask(path)
        assert said.status in (200, 409), path
        assert said.json


def test_odd_manifests_names_and_numbers_are_told(site, forge):
    tape = forge(name="<script>alert(1)</script>\x1b[2J\u202e", tags={"</script>": "\x00"})
    tape.tool("<img src=x onerror=alert(1)>", {"n": 10**400}, value=-(10**400))
    tape.event("odd\x1b[31m", {"$blob": "../../etc/passwd", "size": -1}, user=True)
    tape.end()
    members = json.loads((tape.path / "manifest.json").read_bytes())
    members |= {"command": [1, None, {"x": []}], "duration_s": 1e308, "started_at": "\ud800"}
    (tape.path / "manifest.json").write_text(json.dumps(members))
    for path in PATHS:
        said = site.ask(path)
        assert said.status == 200, (path, said.raw)
        assert said.headers["content-type"] == "application/json"
        assert said.headers["x-content-type-options"] == "nosniff"
        assert said.json


def test_a_folder_of_rubbish_does_not_keep_the_others_from_being_listed(site, forge, store):
    forge().end()
    (store / "runs" / "rubbish").mkdir()
    (store / "runs" / "rubbish" / "tape-1.jsonl").write_bytes(b"\x00\xff{}\n" * 10)
    (store / "runs" / "empty").mkdir()
    rows = site.ask("/api/recordings").json["runs"]
    assert {row["id"] for row in rows} == {"20261115-071105-k3f9", "rubbish", "empty"}
    for run in ("rubbish", "empty"):
        for path in ("", "/events", "/calls/1"):
            assert site.ask(f"/api/recordings/{run}{path}").status in (200, 404, 409)

"""A run is followed while it grows: nothing twice, nothing missed, and an end; so is the list."""

import json
import os
import shutil

import pytest

from playhead.tape.sealed.seal import seal
from playhead.views.web.api import story_cache as stories

RUN = "/api/recordings/20261115-071105-k3f9"


class Stream:
    """Messages of an event stream, read one by one."""

    def __init__(self, site, path, **headers):
        self.connection = site.connection()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request("GET", path, headers={"Accept": "text/event-stream", **named})
        self.answer = self.connection.getresponse()

    def __iter__(self):
        fields = {}
        while line := self.answer.readline().decode().rstrip("\r\n") + "\n":
            name, _, value = line.rstrip("\n").partition(": ")
            if name:
                fields[name] = value
                continue
            if "data" in fields:
                yield fields
                if fields.get("event") == "end":
                    return
            fields = {}

    def take(self, count):
        found = []
        for message in self:
            found.append(message)
            if len(found) == count:
                break
        return found

    def close(self):
        self.answer.close()
        self.connection.close()


@pytest.fixture
def follow(site):
    opened = []

    def start(path=f"{RUN}/events", **headers):
        stream = Stream(site, path, **headers)
        opened.append(stream)
        return stream

    yield start
    for stream in opened:
        stream.close()


def kinds(messages):
    return [json.loads(one["data"]).get("kind") for one in messages]


def test_a_finished_run_is_told_and_then_ended(follow, refund):
    stream = follow()
    assert stream.answer.getheader("Content-Type").startswith("text/event-stream")
    *told, last = stream
    lines = refund.file.read_text().splitlines()
    assert [json.loads(one["data"]) for one in told] == [json.loads(line) for line in lines]
    assert (last["event"], json.loads(last["data"])) == ("end", {"status": "failed"})


def test_a_run_that_grows_is_told_as_it_grows(follow, forge):
    tape = forge(pid=os.getpid())
    stream = follow()
    assert kinds(stream.take(2)) == ["segment.start", "run.start"]
    tape.tool("lookup", {"n": 1}, value=2)
    assert kinds(stream.take(2)) == ["call", "outcome"]
    tape.event("thought", {"n": 2}, user=True)
    assert kinds(stream.take(1)) == ["thought"]
    tape.end()
    *rest, last = stream
    assert kinds(rest) == ["run.end", "segment.end"]
    assert json.loads(last["data"]) == {"status": "ok"}


def test_who_comes_back_is_told_what_he_has_missed_and_nothing_else(follow, forge):
    tape = forge(pid=os.getpid())
    tape.tool("lookup", {"n": 1}, value=2)
    first = follow()
    heard = first.take(3)
    first.close()
    tape.tool("lookup", {"n": 2}, value=3)
    tape.end()
    again = list(follow(Last_Event_ID=heard[-1]["id"]))
    assert kinds(heard + again[:-1]) == kinds(
        {"data": line} for line in tape.file.read_text().splitlines()
    )
    positions = list(follow(f"{RUN}/events?after=3"))
    assert positions == again


def test_the_end_is_told_also_of_a_run_that_was_sealed_meanwhile(follow, forge):
    tape = forge(pid=os.getpid())
    stream = follow()
    stream.take(2)
    tape.tool("lookup", {"n": 1}, value=2)
    tape.end()
    seal(tape.path)
    *told, last = stream
    assert kinds(told) == ["call", "outcome", "run.end", "segment.end"]
    assert last["event"] == "end"


def test_only_what_was_asked_for_is_followed(follow, refund):
    *told, _ = follow(f"{RUN}/events?boundary=tool&kind=call")
    assert [json.loads(one["data"])["data"]["name"] for one in told] == [
        "lookup_order",
        "issue_refund",
    ]


def test_following_nobody_and_from_nowhere_is_refused(site, refund):
    wants = {"Accept": "text/event-stream"}
    assert site.ask("/api/recordings/nobody/events", **wants).status == 404
    assert site.ask(f"{RUN}/events?after=x", **wants).status == 400
    assert site.ask(f"{RUN}/events", **wants, Last_Event_ID="x y").status == 400


def test_the_list_says_when_it_has_changed(follow, forge):
    stream = follow("/api/live")
    stream.take(1)
    tape = forge(pid=os.getpid())
    stream.take(1)
    tape.tool("lookup", {"n": 1}, value=2)
    stream.take(1)
    tape.end()
    stream.take(1)


def test_a_run_that_is_deleted_meanwhile_ends_as_gone(follow, forge):
    tape = forge(pid=os.getpid())
    stream = follow()
    stream.take(2)
    shutil.rmtree(tape.path)
    (last,) = stream
    assert (last["event"], json.loads(last["data"])) == ("end", {"status": "gone"})


def test_a_run_is_told_as_ended_as_soon_as_it_has(site, forge, monkeypatch):
    monkeypatch.setattr(stories, "_PATIENCE", 10**9)
    tape = forge(pid=os.getpid())
    assert site.ask(RUN).json["summary"]["status"] == "running"
    tape.tool("lookup", {"n": 1}, value=2)
    assert site.ask(RUN).json["summary"]["calls"] == 0
    tape.end()
    said = site.ask(RUN).json
    assert (said["summary"]["status"], said["summary"]["calls"]) == ("ok", 1)
    assert said["model"]["run"]["status"] == "ok"

"""What a level and the redaction leave of an event."""

import base64
import json
from pathlib import Path

import pytest

from playhead import events
from playhead.encoding.levels import digest, reduce
from playhead.encoding.values import freeze
from playhead.host import native_core
from playhead.recording.encoder import NewEvent, OpenSegment, append
from playhead.redact import Redactor
from playhead.tape.writer import SegmentWriter

CALL = {"boundary": "http", "name": "GET x", "request": {"body": "secret plans"}, "url": "http://x"}


def kept(level, kind, data, *, ours=True):
    return freeze(reduce(level, kind, data, ours=ours))


def test_full_keeps_everything_as_it_is():
    assert reduce("full", events.CALL, CALL, ours=True) is CALL


def test_minimal_keeps_what_happened_and_no_content():
    assert kept("minimal", events.CALL, CALL) == {
        "boundary": "http",
        "name": "GET x",
        "url": "http://x",
    }
    assert kept("minimal", "note", {"a": 1}, ours=False) is None
    assert kept("minimal", "note", "text", ours=False) is None


def test_standard_keeps_hashes_sizes_and_small_facts():
    got = kept("standard", events.CALL, CALL)
    assert got["boundary"] == "http"
    assert set(got["request"]) == {"$hash", "size"}
    assert kept("standard", "note", {"n": 3, "ok": True, "text": "x"}, ours=False)["n"] == 3
    assert kept("standard", "note", "text", ours=False)["size"] == 4


def test_equal_contents_have_equal_hashes_and_others_do_not():
    one, other = (
        kept("standard", "note", {"t": t}, ours=False) for t in ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    )
    assert one == other
    assert one != kept("standard", "note", {"t": {"a": 1, "b": 3}}, ours=False)


def test_errors_are_kept_from_standard_on_and_named_at_minimal():
    data = {"call": 1, "how": "raised", "error": ValueError("because")}
    assert kept("standard", events.OUTCOME, data)["error"]["message"] == "because"
    assert kept("minimal", events.OUTCOME, data)["error_type"] == "ValueError"
    frozen = {**data, "error": {"$exception": "a.b:C.D"}}
    assert kept("minimal", events.OUTCOME, frozen)["error_type"] == "C.D"


@pytest.mark.parametrize("kind", [events.RUN_START, events.RUN_END, events.GAP, events.HOLE])
def test_what_tells_of_the_recording_itself_is_kept_whole(kind):
    assert reduce("minimal", kind, {"why": "x"}, ours=True) == {"why": "x"}
    assert reduce("minimal", kind, {"why": "x"}, ours=False) is None


def test_a_dict_that_lies_about_its_items_is_read_as_it_is():
    class Liar(dict):
        def items(self):
            raise RuntimeError

        get = __iter__ = items

    assert set(kept("standard", "note", Liar(a="x"), ours=False)) == {"a"}
    assert kept("minimal", events.SEAM, Liar(name="x", value=1)) == {"name": "x"}


def test_any_value_has_a_digest():
    for value in (None, 1, "a", [1], {"a": [None]}, {1: 2}, object(), {"$x": 1}, "\ud800"):
        json.dumps(freeze(digest(freeze(value))))


@pytest.mark.parametrize("is_native", [True, False])
def test_a_member_that_is_redacted_already_is_written_as_it_is(tmp_path, monkeypatch, is_native):
    if not is_native:
        monkeypatch.setattr(native_core, "core", None)
    # Placeholders beside the rest of a cookie look like one base64 text with a secret.
    encoded = base64.b64encode(b"db.host:5432:name:user:redacted-pgpass-31257929").decode()
    headers = [["Cookie", f"{encoded.rstrip('=')}redacted-header-9df8fde8xxxx"]]
    segment = OpenSegment(tmp_path, who="test", redactor=Redactor(key=b"k" * 32))
    writer = SegmentWriter(tmp_path)
    segment.write_to(writer)
    text = "password=hunter2hunter2"
    append(segment, NewEvent("call", {"text": text, "headers": headers}, redacted="headers"))
    writer.close()
    (line,) = Path(writer.path).read_text().splitlines()
    data = json.loads(line)["data"]
    assert "hunter2" not in data["text"]
    assert data["headers"] == headers
    assert list(data) == ["text", "headers"]

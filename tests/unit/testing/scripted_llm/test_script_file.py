"""Scripts from Python objects, JSON and TOML: the same script, or a refusal that says where."""

import json

import pytest

from playhead.errors import UsageError
from playhead.testing import (
    Cut,
    Failure,
    Reply,
    Script,
    ScriptError,
    ToolCall,
    Usage,
    When,
    load_script,
)

WHOLE = {
    "text": "Let me look.",
    "thinking": "A file?",
    "tool_calls": [{"name": "ls", "arguments": {"path": "."}, "id": "call_1"}],
    "stop_reason": "tool_use",
    "usage": {"input": 10, "output": 20, "cache_read": 5, "cache_write": 6, "reasoning": 7},
    "model": "claude-x",
    "delay": 0.5,
    "chunk_delay": 0.01,
    "chunks": 3,
    "error": {"status": 429, "message": "Slow down.", "retry_after": 2, "retry": True, "after": 1},
    "cut": {"after": 3, "mid_event": True, "how": "reset"},
    "when": {
        "contains": "look",
        "matches": "l.ok",
        "conversation": "Paris",
        "turn": 2,
        "model": "claude",
        "path": "/v1",
        "nth": 4,
    },
    "repeat": "forever",
}
AS_REPLY = Reply(
    text="Let me look.",
    thinking="A file?",
    tool_calls=(ToolCall(name="ls", arguments={"path": "."}, id="call_1"),),
    stop_reason="tool_use",
    usage=Usage(input=10, output=20, cache_read=5, cache_write=6, reasoning=7),
    model="claude-x",
    delay=0.5,
    chunk_delay=0.01,
    chunks=3,
    error=Failure(status=429, message="Slow down.", retry_after=2, after=1),
    cut=Cut(after=3, mid_event=True, how="reset"),
    when=When(
        contains="look",
        matches="l.ok",
        conversation="Paris",
        turn=2,
        model="claude",
        path="/v1",
        nth=4,
    ),
    repeat="forever",
)


def test_every_field_of_a_reply_can_be_written_in_json(tmp_path):
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"replies": [WHOLE]}))
    assert load_script(path) == Script(replies=(AS_REPLY,))
    assert load_script(str(path)) == load_script([WHOLE])


def test_the_same_script_can_be_written_in_toml(tmp_path):
    path = tmp_path / "script.toml"
    path.write_text(
        """
        [defaults]
        chunk_delay = 0.25

        [[replies]]
        text = "Let me look."
        tool_calls = [{ name = "ls", arguments = { path = "." } }]

        [[replies]]
        error = 529
        chunk_delay = 0

        [[replies]]
        text = "cut"
        cut = 3
        """
    )
    look, overloaded, cut = load_script(path).replies
    assert look.tool_calls == (ToolCall(name="ls", arguments={"path": "."}),)
    assert look.chunk_delay == 0.25
    assert overloaded == Reply(error=Failure(status=529), chunk_delay=0)
    assert cut.cut == Cut(after=3)


def test_texts_replies_and_tables_may_stand_side_by_side():
    script = load_script(["one", Reply(text="two"), {"text": "three"}])
    assert [reply.text for reply in script.replies] == ["one", "two", "three"]


REFUSED = [
    ([{"txet": "x"}], "replies[0]: there is no field 'txet'. Did you mean 'text'?"),
    (["x", {"zzz": 1}], "replies[1]: there is no field 'zzz'. Known: text, thinking"),
    ([{"text": 3}], "replies[0].text: expected a text, found int 3."),
    ([{"chunks": 0}], "replies[0].chunks: expected a whole number, 1 or more, found int 0."),
    ([{"repeat": True}], 'expected a whole number, 1 or more, or "forever", found bool True.'),
    ([{"delay": -1}], "replies[0].delay: expected seconds, 0 or more"),
    ([{"error": 200}], "replies[0].error.status: expected an HTTP status from 400 on"),
    ([{"error": {"message": "x"}}], "replies[0].error: missing 1 required"),
    ([{"cut": {"after": 1, "how": "rest"}}], "expected one of close, reset, stall; found str"),
    ([{"stop_reason": "stop"}], "expected one of end_turn, max_tokens"),
    ([{"when": {"matches": "("}}], "replies[0].when.matches: '(' is not a regular expression"),
    ([{"tool_calls": [{"arguments": {}}]}], "replies[0].tool_calls[0]: missing 1 required"),
    ([{"tool_calls": "ls"}], "replies[0].tool_calls: expected a list, found str 'ls'."),
    ([3], "replies[0]: expected a table of fields, found int 3."),
    ({"reply": []}, "script: there is no field 'reply'. Did you mean 'replies'?"),
    ({}, "The script has no replies."),
    ({"replies": "x"}, "replies: expected a list, found str 'x'."),
    ({"replies": [], "defaults": {"txt": 1}}, "defaults: there is no field 'txt'."),
]


@pytest.mark.parametrize(("source", "said"), REFUSED)
def test_a_wrong_script_is_refused_with_the_place(source, said):
    with pytest.raises(ScriptError) as refused:
        load_script(source)
    assert said in str(refused.value)
    assert isinstance(refused.value, UsageError)


def test_a_script_that_is_missing_or_no_json_is_named(tmp_path):
    with pytest.raises(ScriptError, match=r"Cannot read the script .*none\.json"):
        load_script(tmp_path / "none.json")
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    with pytest.raises(ScriptError, match=r"broken\.json is not valid json"):
        load_script(broken)
    broken_toml = tmp_path / "broken.toml"
    broken_toml.write_text("[[")
    with pytest.raises(ScriptError, match=r"broken\.toml is not valid toml"):
        load_script(broken_toml)
